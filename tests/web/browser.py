"""A headless Chromium, as users have it."""

import base64
import os
import re
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import PATIENCE_S, Daemon, wait_until
from operators import lacks
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

WIDTH, HEIGHT = 1100, 900


def address_of(daemon: Daemon) -> str:
    wait_until(lambda: "dashboard at" in daemon.log(), "the dashboard")
    found = re.search(r"dashboard at (http://\S+)", daemon.log())
    assert found
    return found.group(1)


class Browser:
    """One tab. Waiting ends with a failure that shows the page."""

    def __init__(self) -> None:
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            lacks("no chromium and chromedriver: bash deploy/install_dependencies.sh --web")
        self._profile = tempfile.TemporaryDirectory(prefix="eagle-chromium-")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in (
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-device-scale-factor=1",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--user-data-dir={self._profile.name}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root may have no sandbox
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=driver)
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(PATIENCE_S)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.quit()
        self._profile.cleanup()

    def open(self, address: str) -> None:
        """A page that nobody has looked at: one that differs in its fragment alone would not be loaded anew."""
        self.console()
        self.driver.get("about:blank")
        self.driver.get(address)

    def console(self) -> list[str]:
        """What the page has complained of since the last call: of requests that were refused, too."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def find(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        found = self.find(selector)
        assert found, f"no {selector} in {self.text()}"
        return found[0]

    def text(self, selector: str = "body") -> str:
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, script: str, what: str) -> None:
        wait_until(lambda: bool(self.run(f"return {script}")), f"{what}; the page says:\n{self.text()}")

    def hover(self, x: float, y: float) -> None:
        """The pointer at this point of the window."""
        chain = ActionChains(self.driver)
        chain.w3c_actions.pointer_action.move_to_location(int(x), int(y))
        chain.perform()

    def top(self, height: int) -> bytes:
        """A screenshot of so many rows of the window: where there is nothing below."""
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})["data"])

    def screenshot(self, element: str | None = None) -> bytes:
        return self.one(element).screenshot_as_png if element else self.driver.get_screenshot_as_png()


def save(picture: bytes, name: str) -> None:
    """For the manual; see README.md."""
    from struct import unpack

    from harness import ROOT

    assert picture.startswith(b"\x89PNG"), name
    width, height = unpack(">II", picture[16:24])
    path = ROOT / "docs/manual/pictures/dashboard" / f"{name}.png"
    if os.environ.get("EAGLE_WRITE_SCREENSHOTS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    assert width > 300
    assert height > 100
    assert len(picture) > 4000, f"{name} shows nothing"
    assert Path(path).is_file(), f"{path} is not there: EAGLE_WRITE_SCREENSHOTS=1"
