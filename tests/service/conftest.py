"""A daemon under attack, load and bad luck: every test says what the service survives, and a table sums it up."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
pytest_plugins = ["daemons"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "survives(what): what the service lives through in this test")


@pytest.fixture(autouse=True)
def _row(request: pytest.FixtureRequest, record_property) -> None:
    """The test's row of the table (print_table.py), and what it measured, see `measured`."""
    marker = request.node.get_closest_marker("survives")
    assert marker is not None, "say what the service survives here: @pytest.mark.survives(...)"
    record_property("survives", marker.args[0])


@pytest.fixture
def measured(record_property):
    """measured(text): a figure for the table. Nothing is asserted of it."""
    return lambda text: record_property("measured", text)
