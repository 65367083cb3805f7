"""The manual names all there is. Its examples are run by tests/docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eagle import language, math, random

PAGES = Path(__file__).parents[2] / "docs" / "manual"
MANUAL = PAGES / "kernels.md"
ACCUMULATION = PAGES / "accumulation.md"


@pytest.mark.parametrize("name", random.__all__)
def test_every_random_function_stands_in_the_manual(name):
    assert re.search(rf"`{name}\(", ACCUMULATION.read_text())


@pytest.mark.parametrize("name", [*language.__all__, *math.__all__])
def test_every_function_of_the_language_stands_in_the_manual(name):
    assert re.search(rf"\b{name}\b", MANUAL.read_text())
