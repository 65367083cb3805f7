"""compose.yaml against Compose's own schema, and what it must not ask for."""

import subprocess
import sys

import yaml
from harness import PATIENCE_S, ROOT

COMPOSE = ROOT / "deploy/docker/compose.yaml"


def test_the_file_passes_the_schema() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_manual_starts_this_file() -> None:
    page = (ROOT / "docs/manual/containers.md").read_text()
    assert f"\ndocker compose -f {COMPOSE.relative_to(ROOT)} up\n" in page


def test_services_share_the_socket_and_nothing_else() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert set(services) == {"eagled", "client"}
    for name, service in services.items():
        assert not {"ipc", "pid", "shm_size", "privileged", "cap_add"} & set(service), name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "socket:/run/eagled" in service["volumes"]


def test_the_daemon_gets_its_drain() -> None:
    settings = (ROOT / "deploy/docker/eagled.toml").read_text()
    drain = int(next(line for line in settings.splitlines() if line.startswith("drain_timeout")).split("=")[1])
    grace = yaml.safe_load(COMPOSE.read_text())["services"]["eagled"]["stop_grace_period"]
    assert int(grace.rstrip("s")) >= drain + 15  # server/keeper/keeper.cpp: the longest end
