"""The dashboard in a browser."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "operations"))
pytest_plugins = ["daemons"]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:  # noqa: F821
    from browser import Browser

    with Browser() as opened:
        yield opened
