"""What a notebook shows: cells that a real Jupyter kernel runs, and the messages by which it has them drawn."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from blocks import blocks_of
from harness import BUILD, PATIENCE_S
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager


@dataclass
class Cell:
    """What came of one."""

    shown: dict[str, str] = field(default_factory=dict)  # the last value, by its MIME type
    displays: list[dict[str, str]] = field(default_factory=list)  # in their order, with those that were drawn anew
    printed: str = ""


class Notebook:
    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, code: str) -> Cell:
        cell = Cell()

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "execute_result":
                cell.shown = content["data"]
            elif message["msg_type"] in ("display_data", "update_display_data"):
                cell.displays.append(content["data"])
            elif message["msg_type"] == "stream":
                cell.printed += content["text"]

        ended = self._client.execute_interactive(code, output_hook=hear, timeout=2 * PATIENCE_S)
        assert ended["content"]["status"] == "ok", "\n".join(ended["content"].get("traceback", []))
        return cell


@pytest.fixture(scope="module")
def notebook(endpoint: str) -> Iterator[Notebook]:
    manager = KernelManager()
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv[0] = sys.executable
    path = os.pathsep.join((str(BUILD / "bin"), os.environ["PATH"]))
    manager.start_kernel(env={**os.environ, "EAGLE_ENDPOINT": endpoint, "PATH": path})
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE_S)
        yield Notebook(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_first_page_can_be_pasted_cell_by_cell(notebook: Notebook) -> None:
    page = "docs/manual/start.md"
    cells = [block.code for block in blocks_of(page) if block.language == "python"]
    printed = [notebook.run(cell.replace("start.svg", os.devnull)).printed for cell in cells]
    shown = [block.code for block in blocks_of(page) if block.language == "text"]
    assert [text for text in printed if text] == shown


def test_a_cell_that_ends_with_a_graph_shows_its_picture(notebook: Notebook) -> None:
    shown = notebook.run("import eagle\ng = eagle.Graph(name='here')\ng").shown
    assert shown["image/svg+xml"].startswith("<svg ")
    assert shown["text/plain"].startswith("<eagle.Graph here")


def test_a_cell_that_ends_with_a_reverse_pass_shows_its_picture(notebook: Notebook) -> None:
    notebook.run(RUN + BACK)
    shown = notebook.run("eagle.diff.Reverse(recorded.record, ['x'])").shown
    assert shown["image/svg+xml"].startswith("<svg ")
    assert "reverse count" in shown["image/svg+xml"]


BACK = """
x, done = eagle.zeros(8), eagle.zeros(8, dtype=bool)
recorded = eagle.diff.simulate(count, max_steps=200, x=x, done=done)
"""

RUN = """
import eagle
from eagle import Mutable, Scalar, Terminated, kernel

@kernel
def count(x: Mutable[Scalar], done: Terminated):
    x = x + 1.0
    done = x >= 100.0

x, done = eagle.zeros(8), eagle.zeros(8, dtype=bool)
result = eagle.simulate(count, max_steps=200, progress=True, x=x, done=done)
"""


def test_a_long_run_draws_a_bar_that_ends_full(notebook: Notebook) -> None:
    cell = notebook.run(RUN)
    bars = [data["text/html"] for data in cell.displays if "text/html" in data]
    assert bars, "nothing was drawn"
    assert bars[-1].startswith('<progress value="1.0000" max="1"')
    assert "step 100, 8 of 8 finished" in bars[-1]
    assert cell.printed == "", "nothing is printed beside it"


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("result", "finished"),
        ("result.report", "100"),
        ("eagle.connect()", "threads"),
        ("eagle.connect().info()", "planes"),
        ("s = eagle.connect(); a = s.zeros(5, name='speed'); s.planes()", "memfd"),
        (BACK + "eagle.diff.reverse(recorded.record, {'x': [1.0] * 8})", "beside a record of"),
    ],
    ids=["result", "report", "session", "info", "planes", "gradients"],
)
def test_a_cell_that_ends_with_one_of_these_shows_a_table(notebook: Notebook, last: str, words: str) -> None:
    notebook.run(RUN)
    shown = notebook.run(last).shown
    assert shown["text/html"].startswith("<table>")
    assert words in shown["text/html"]
    assert shown["text/plain"]
