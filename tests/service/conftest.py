"""A daemon under attack, load and bad luck: every test says what the service survives, and a table sums it up."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
pytest_plugins = ["daemons"]

from harness import Daemon, new_token  # noqa: E402 (its folder is known from here on)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "survives(what): what the service lives through in this test")


@pytest.fixture(autouse=True)
def _row(request: pytest.FixtureRequest, record_property) -> None:
    """The test's row of the table (print_table.py), and what it measured, see `measured`."""
    marker = request.node.get_closest_marker("survives")
    assert marker is not None, "say what the service survives here: @pytest.mark.survives(...)"
    record_property("survives", marker.args[0])


@pytest.fixture
def token_daemon(short_path: Path) -> Iterator[tuple[Daemon, dict[str, str]]]:
    """A daemon whose clients on its unix socket show tokens, each a tenant: their subjects and tokens."""
    made = {subject: new_token(subject) for subject in ("alice", "mallory")}
    file, config = short_path / "tokens", short_path / "eagled.toml"
    file.write_text("".join(f"{row}\n" for _, row in made.values()))
    file.chmod(0o600)
    socket = short_path / "eagled.sock"  # as in Daemon
    config.write_text(f'[[listen]]\nendpoint = "unix:{socket}"\nidentity = "token"\n[tokens]\nfile = "{file}"\n')
    daemon = Daemon(short_path, "--config", str(config), listens=False)
    try:
        yield daemon, {subject: token for subject, (token, _) in made.items()}
    finally:
        assert daemon.stop() == 0, daemon.log()


@pytest.fixture
def measured(record_property):
    """measured(text): a figure for the table. Nothing is asserted of it."""
    return lambda text: record_property("measured", text)
