"""The examples of the manual run as they stand there, one after another."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import eagle
from eagle import language, math

MANUAL = Path(__file__).parents[2] / "docs" / "manual" / "kernels.md"


def test_the_examples_of_the_manual_run(tmp_path, session):
    blocks = re.findall(r"^```python\n(.*?)^```$", MANUAL.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 4
    module = tmp_path / "manual_examples.py"
    module.write_text("\n".join(blocks))
    spec = importlib.util.spec_from_file_location("manual_examples", module)
    examples = importlib.util.module_from_spec(spec)
    with session:
        spec.loader.exec_module(examples)
    kernels = [thing for thing in vars(examples).values() if isinstance(thing, eagle.Kernel)]
    assert {k.name for k in kernels} >= {"oscillator", "weighted", "root", "orbit", "fall", "share"}
    assert all(k.translation("f32").kernel.hash for k in kernels)


@pytest.mark.parametrize("name", [*language.__all__, *math.__all__])
def test_every_function_of_the_language_stands_in_the_manual(name):
    assert re.search(rf"\b{name}\b", MANUAL.read_text())
