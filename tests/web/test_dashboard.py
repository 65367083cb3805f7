"""The dashboard as an operator sees it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import eagle
import pytest
from browser import Browser, address_of, save
from harness import EAGLED, PATIENCE_S, Daemon, eaglectl
from scenes import pendulum, working
from selenium.webdriver.remote.webelement import WebElement

#: Seconds that the lines of the overview show; in the manual's picture more than are needed to see that there is one.
SAMPLES = 30 if os.environ.get("EAGLE_WRITE_SCREENSHOTS") else 3
HOSTILE = (
    "<img src=x onerror=\"document.title='broken in'\"></title></script><script>document.title='broken in'</script>"
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with TemporaryDirectory(prefix="eagle-") as folder:
        running = Daemon(Path(folder), "--web", "127.0.0.1:0", "--threads", "2")
        try:
            yield running
        finally:
            assert running.stop() == 0, running.log()


@pytest.fixture(scope="module")
def session(daemon: Daemon) -> Iterator[eagle.Session]:
    with eagle.connect(daemon.endpoint) as connected:
        yield connected


@pytest.fixture(scope="module")
def graph(session: eagle.Session) -> Iterator[eagle.Graph]:
    made = pendulum(session)
    with working(made):
        yield made


def open_graph(browser: Browser, daemon: Daemon, name: str) -> None:
    browser.open(address_of(daemon))
    browser.wait_for("document.querySelectorAll('#graphs a').length > 0", "a list of graphs")
    links = browser.run("return [...document.querySelectorAll('#graphs a')].map(one => [one.textContent, one.hash])")
    browser.one(f'#graphs a[href="{dict(links)[name]}"]').click()
    # It is drawn before it is shown.
    there = "document.querySelectorAll('#picture g.node').length > 0 && !document.getElementById('graph').hidden"
    browser.wait_for(there, "the picture")


def test_it_shows_who_is_here_and_what_they_hold(
    browser: Browser, daemon: Daemon, session: eagle.Session, graph: eagle.Graph
) -> None:
    browser.open(address_of(daemon))
    lines = "document.querySelector('#rates path')?.getAttribute('d').split('L').length"
    browser.wait_for(f"{lines} > {SAMPLES}", "samples")
    assert browser.text("#state") == "serving"
    rate = int(browser.text("#rate").replace(",", ""))
    assert rate > 0
    assert "job" in browser.text("#queue")
    assert "of" in browser.text("#budgeted")
    sessions = browser.text("#sessions")
    listed = json.loads(eaglectl("--endpoint", daemon.endpoint, "--json", "sessions").stdout)
    ours = next(one for one in listed if one["graphs"] == 1)
    assert str(ours["client"]) in sessions
    assert f"uid:{os.getuid()}" in sessions
    assert "unix, ring" in sessions
    assert "pendulum" in browser.text("#graphs")
    assert "MiB" in browser.text("#planes")
    assert "uid:" in browser.text("#tenants")
    assert browser.console() == []
    save(browser.screenshot(), "overview")


def test_a_graph_has_its_picture_with_the_heat_of_its_nodes(
    browser: Browser, daemon: Daemon, graph: eagle.Graph
) -> None:
    open_graph(browser, daemon, "pendulum")
    browser.wait_for("document.querySelectorAll('#picture g.node.hot').length == 6", "six measured nodes")
    texts = [node.get_attribute("textContent") for node in browser.find("#picture g.node text")]
    assert sorted(texts) == ["drift", "keep", "kinetic", "potential", "pull", "total"]
    fills = browser.run(
        "return [...document.querySelectorAll('#picture g.node rect')].map(box => getComputedStyle(box).fill)"
    )
    assert len(set(fills)) > 1, f"all nodes take as long: {fills}"
    assert "measured launches" in browser.text("#heat-text")
    assert "work_share" in browser.text("#schedule")
    assert browser.console() == []
    save(browser.screenshot("#graph figure"), "graph")


# What the engine says of each edge, looked up in the description and not on the page.
EDGES = {
    ("drift (0)", "pull (1)"): ("RAW x", "bytes 0 to 1599999"),
    ("pull (1)", "kinetic (2)"): ("RAW v", "bytes 0 to 1599999"),
    ("kinetic (2)", "total (4)"): ("RAW e", "bytes 0 to 1599999"),
    ("potential (3)", "total (4)"): ("RAW w", "bytes 0 to 1599999"),
    ("total (4)", "keep (5)"): ("RAW h → src", "800000 bytes from 0 to 1599991"),
}


def point_on(browser: Browser, edge: WebElement, top: bool = False) -> list[float]:
    """Where its line runs by itself: lines of one node share their beginning. The page is at its top, or this edge in
    the middle of the window.
    """
    point = browser.run(
        """if (arguments[1]) scrollTo(0, 0);
        else arguments[0].scrollIntoView({block: 'center'});
        const path = arguments[0].querySelector('path:last-child'), all = path.getTotalLength();
        for (let part = 0.95; part > 0; part -= 0.05) {
          const at = path.getPointAtLength(part * all);
          const there = new DOMPoint(at.x, at.y).matrixTransform(path.getScreenCTM());
          const edges = document.elementsFromPoint(there.x, there.y).map(one => one.closest('g.edge'));
          if (new Set(edges.filter(Boolean)).size === 1 && edges[0] === arguments[0]) return [there.x, there.y];
        }""",
        edge,
        top,
    )
    assert point, f"an edge that nobody can point at; the page says:\n{browser.text()}"
    return point


def test_an_edge_is_explained_under_the_pointer(browser: Browser, daemon: Daemon, graph: eagle.Graph) -> None:
    open_graph(browser, daemon, "pendulum")
    explained = {}
    for edge in browser.find("#picture g.edge"):
        x, y = point_on(browser, edge)
        browser.hover(1, 1)
        browser.wait_for("document.getElementById('tip').hidden", "no tooltip")
        browser.hover(x, y)
        browser.wait_for("!document.getElementById('tip').hidden", "a tooltip")
        head, *lines = browser.text("#tip").splitlines()
        source, _, destination = head.partition(" → ")
        explained[source, destination] = "\n".join(lines)
        lit = browser.run(
            "return [...document.querySelectorAll('#picture g.node.near')].map(one => one.told.split('\\n')[0])"
        )
        assert sorted(lit) == sorted((source, destination))
        if source.startswith("total"):
            browser.hover(*point_on(browser, edge, top=True))
            save(browser.screenshot(), "edge")
    for pair, (names, where) in EDGES.items():
        assert pair in explained, sorted(explained)
        assert names in explained[pair]
        assert where in explained[pair]
        assert "data flows" in explained[pair]
    listed = browser.text("#edges")
    for (source, destination), (_, where) in EDGES.items():
        assert {part for part in (source, destination, where) if part not in listed} == set()
    assert browser.console() == []


def test_lines_that_share_their_way_are_all_told(browser: Browser, daemon: Daemon, graph: eagle.Graph) -> None:
    open_graph(browser, daemon, "pendulum")
    browser.run("document.querySelector('#picture g.node').scrollIntoView({block: 'center'})")
    x, y = browser.run(
        """const box = [...document.querySelectorAll('#picture g.node')].find(
          one => one.querySelector('text').textContent === 'drift');
        const below = box.querySelector('rect').getBoundingClientRect();
        return [below.x + below.width / 2, below.bottom + 6]"""
    )
    browser.hover(1, 1)
    browser.hover(x, y)
    browser.wait_for("!document.getElementById('tip').hidden", "a tooltip")
    told = browser.text("#tip")
    assert "drift (0) → pull (1)" in told
    assert "drift (0) → potential (3)" in told


def test_a_node_tells_what_it_is_and_takes(browser: Browser, daemon: Daemon, graph: eagle.Graph) -> None:
    open_graph(browser, daemon, "pendulum")
    browser.wait_for("document.querySelectorAll('#picture g.node.hot').length == 6", "six measured nodes")
    node = browser.run(
        """return [...document.querySelectorAll('#picture g.node')].find(
          one => one.querySelector('text').textContent === 'pull')"""
    )
    x, y = browser.run(
        "const box = arguments[0].getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]", node
    )
    browser.hover(x, y)
    browser.wait_for("!document.getElementById('tip').hidden", "a tooltip")
    told = browser.text("#tip")
    assert "pull (1)" in told
    assert "a launch of kernel 'pull' over 200000 samples" in told
    assert "% of all nodes" in told


def test_the_last_timeline_is_drawn_and_can_be_saved(browser: Browser, daemon: Daemon, graph: eagle.Graph) -> None:
    open_graph(browser, daemon, "pendulum")
    browser.wait_for("document.querySelectorAll('#timeline rect.turn').length > 3", "turns of the team")
    assert browser.find("#timeline rect.running")
    saved = json.loads(browser.run("return trace"))
    assert {event["ph"] for event in saved["traceEvents"]} >= {"X", "b", "e"}
    browser.run("document.getElementById('timeline').scrollIntoView()")
    save(browser.screenshot("#graph section:last-child"), "timeline")


def test_names_stay_text(browser: Browser, daemon: Daemon, session: eagle.Session) -> None:
    graph = pendulum(session, samples=1000, name=HOSTILE)
    graph.launch()
    open_graph(browser, daemon, HOSTILE)
    assert browser.text("#graph-name") == HOSTILE
    assert browser.driver.title == "eagled"
    assert browser.find("img, #graph script") == []
    assert browser.console() == []


def test_its_policy_lets_nothing_else_run(browser: Browser, daemon: Daemon, session: eagle.Session) -> None:
    browser.open(address_of(daemon))
    browser.wait_for("document.getElementById('state').textContent == 'serving'", "the state")
    browser.run(
        """const script = document.createElement('script'); script.textContent = 'document.title = "ran"';
        document.body.append(script);
        document.body.insertAdjacentHTML('beforeend', '<b style="color:red">x</b>');
        fetch('http://127.0.0.2:1/').catch(() => { document.body.dataset.fetch = 'refused'; })"""
    )
    browser.wait_for("document.body.dataset.fetch == 'refused'", "the refusal of a fetch from elsewhere")
    assert browser.driver.title == "eagled"
    refused = [line for line in browser.console() if "Content Security Policy" in line]
    assert len(refused) >= 3, refused


def test_a_daemon_that_went_is_noticed(browser: Browser, short_path: Path) -> None:
    running = Daemon(short_path, "--web", "127.0.0.1:0")
    browser.open(address_of(running))
    browser.wait_for("document.getElementById('state').textContent == 'serving'", "the state")
    assert running.stop() == 0, running.log()
    browser.wait_for("document.getElementById('state').textContent == 'the daemon does not answer'", "its end")


def test_who_is_no_admin_shows_a_token(browser: Browser, short_path: Path) -> None:
    made = subprocess.run(
        [EAGLED, "--new-token", "ops"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    token, line = re.findall(r"^(?:token|line)[^:]*.*?: (.+)$", made, re.MULTILINE)
    (short_path / "tokens").write_text(line + "\n")
    (short_path / "tokens").chmod(0o600)
    daemon = Daemon(short_path, "--web", "127.0.0.1:0", "--tokens", str(short_path / "tokens"), "--admins", "token:ops")
    try:
        browser.open(address_of(daemon))
        browser.wait_for("!document.getElementById('login').hidden", "the question for a token")
        assert "is not one of the daemon's admins" in browser.text("#why")
        assert browser.text("#state") == "not shown"
        browser.one("#token").send_keys("wrong" * 8)
        browser.one("#login button").click()
        browser.wait_for("document.getElementById('why').textContent.includes('does not know this token')", "a refusal")
        save(browser.top(150), "token")
        browser.one("#token").send_keys(token)
        browser.one("#login button").click()
        browser.wait_for("document.getElementById('state').textContent == 'serving'", "the state")
        assert browser.run("return document.cookie + localStorage.length + sessionStorage.length") == "00"
    finally:
        assert daemon.stop() == 0, daemon.log()
