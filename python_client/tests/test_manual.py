"""The examples of the manual run as they stand there, one after another."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import eagle
from eagle import language, math, random

PAGES = Path(__file__).parents[2] / "docs" / "manual"
MANUAL = PAGES / "kernels.md"
ACCUMULATION = PAGES / "accumulation.md"


def blocks_of(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def run_blocks(page, tmp_path, session, least=4):
    """The examples of a page as one module, run in the session."""
    blocks = blocks_of(page, "python")
    assert len(blocks) >= least
    module = tmp_path / "manual_examples.py"
    module.write_text("\n".join(blocks))
    spec = importlib.util.spec_from_file_location("manual_examples", module)
    examples = importlib.util.module_from_spec(spec)
    with session:
        spec.loader.exec_module(examples)
    return examples


def test_the_examples_about_stepping_run(tmp_path, session):
    assert run_blocks("stepping.md", tmp_path, session).result.status == "finished"


def test_the_examples_of_the_manual_run(tmp_path, session):
    examples = run_blocks("kernels.md", tmp_path, session)
    kernels = [thing for thing in vars(examples).values() if isinstance(thing, eagle.Kernel)]
    assert {k.name for k in kernels} >= {"oscillator", "weighted", "root", "orbit", "fall", "share"}
    assert all(k.translation("f32").kernel.hash for k in kernels)


def test_the_example_of_execution_runs(tmp_path, session, monkeypatch):
    monkeypatch.delenv("EAGLED_FUSION", raising=False)
    assert run_blocks("execution.md", tmp_path, session, least=1).ran.groups


def test_the_examples_of_accumulation_run(tmp_path, session):
    examples = run_blocks("accumulation.md", tmp_path, session)
    kernels = [thing for thing in vars(examples).values() if isinstance(thing, eagle.Kernel)]
    assert {k.name for k in kernels} >= {"energies", "histogram", "noisy"}


@pytest.mark.parametrize("name", random.__all__)
def test_every_random_function_stands_in_the_manual(name):
    assert re.search(rf"`{name}\(", ACCUMULATION.read_text())


@pytest.mark.parametrize("name", [*language.__all__, *math.__all__])
def test_every_function_of_the_language_stands_in_the_manual(name):
    assert re.search(rf"\b{name}\b", MANUAL.read_text())


def test_the_page_on_pictures_shows_what_the_product_draws(tmp_path, monkeypatch, capsys):
    page = (MANUAL.parent / "pictures.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module = tmp_path / "manual_pictures.py"
    module.write_text("\n".join(code for kind, code in blocks if kind == "python"))
    spec = importlib.util.spec_from_file_location("manual_pictures", module)
    examples = importlib.util.module_from_spec(spec)
    monkeypatch.chdir(tmp_path)
    spec.loader.exec_module(examples)
    shown = {kind: [code for of, code in blocks if of == kind] for kind in ("text", "mermaid", "dot", "explanation")}
    assert shown["text"] == [f"{examples.g}\n"]
    assert shown["mermaid"] == [examples.g.to_mermaid()]
    assert shown["dot"] == [examples.g.to_dot()]
    assert capsys.readouterr().out == "".join(shown["explanation"])
    assert (tmp_path / "graph.svg").read_text() == (MANUAL.parent / "pictures" / "fork_and_join.svg").read_text()
    assert (tmp_path / "graph.png").stat().st_size > 1000


def test_the_tutorial_of_the_graph_model_runs(tmp_path, session, capsys):
    examples = run_blocks("graph_model.md", tmp_path, session)
    assert examples.broken.node_labels() == ["energy", "distance"]
    assert "push -> distance x RAW data flows\n" in capsys.readouterr().out


def test_the_example_prints_every_picture_of_the_tutorial(capsys):
    from eagle.examples import graph_model

    with eagle.local(threads=2):
        graph_model.build_and_look()
        graph_model.break_it()
        graph_model.repair_it()
        graph_model.now_and_then()
    printed = capsys.readouterr().out
    pictures = blocks_of("graph_model.md", "text")
    assert len(pictures) > 4
    for picture in pictures:
        assert picture in printed
