"""The wheel and the tarball where nothing else is installed: a root that holds Python, and numpy's own wheel."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from harness import ROOT
from machine import MissingTool
from operators import lacks
from roots import plain_root, run_in

pytestmark = pytest.mark.timeout(900)  # the first test may make the root

# README.md's, whose digits are those of a plain C++ loop.
DIGITS = "[0.5405728050653854, 0.5405711223621569, 0.540569439656762]"


def readme_program() -> str:
    programs = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (found,) = (program for program in programs if "eagle.simulate" in program)
    return found


@pytest.fixture(scope="module")
def numpy_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numpy")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "numpy"],
        check=True,
        timeout=170,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def root() -> Path:
    try:
        return plain_root()
    except MissingTool as why:
        lacks(str(why))


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """A folder that is seen as /mnt in the root."""
    folder = tmp_path / "brought"
    folder.mkdir()
    return folder


def test_the_wheel_brings_the_daemon_along(root: Path, brought: Path, numpy_wheel: Path, one) -> None:
    wheel = one("eagled-*.whl")
    for path in (wheel, numpy_wheel):
        (brought / path.name).write_bytes(path.read_bytes())
    (brought / "program.py").write_text(
        readme_program() + "import os\nprint('own process', result.report.host.pid == os.getpid())\n"
    )
    script = """
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --no-index --find-links /mnt eagled
/tmp/venv/bin/python /mnt/program.py
"""
    said = run_in(root, script, "--ro-bind", str(brought), "/mnt")
    assert "finished 1000 1000000" in said
    assert DIGITS in said
    assert "own process False" in said, "it was a daemon that computed"


def test_the_wheel_says_what_it_needs(one) -> None:
    wheel = one("eagled-*.whl")
    assert "manylinux_2_36" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        information = next(name for name in names if name.endswith("METADATA"))
        metadata = archive.read(information).decode()
    assert re.search(r"^Name: eagled$", metadata, re.MULTILINE)
    assert {"eagle/bin/eagled", "eagle/bin/eagle-compile", "eagle/bin/eaglectl"} <= set(names)
    assert any(name.startswith("eagle/licenses/") for name in names), "what is linked in comes with its licences"


def test_the_tarball_runs_wherever_it_lies(root: Path, brought: Path, one) -> None:
    (brought / "eagled.tar.gz").write_bytes(one("eagled-*.tar.gz").read_bytes())
    script = """
mkdir /tmp/here && tar --extract --gzip --directory /tmp/here --file /mnt/eagled.tar.gz
mv /tmp/here/eagled-* "/tmp/another place"
cd "/tmp/another place/bin"
./eagled --version
./eagled --listen unix:/tmp/eagled.sock 2>/tmp/log &
export EAGLE_ENDPOINT=unix:/tmp/eagled.sock
until ./eaglectl info >/dev/null 2>&1; do kill -0 $! || { cat /tmp/log; exit 1; }; sleep 0.1; done
./eaglectl bench --launches 20
./eagled health --listen unix:/tmp/eagled.sock
kill $!
wait $!
"""
    said = run_in(root, script, "--ro-bind", str(brought), "/mnt")
    assert "ring" in said
    assert "SERVING" in said.upper()
