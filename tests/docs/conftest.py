"""The pages of the manual, run."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "operations"))
pytest_plugins = ["daemons"]


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Of one daemon for all pages: they leave nothing behind."""
    from harness import Daemon

    with TemporaryDirectory(prefix="eagle-") as folder:
        daemon = Daemon(Path(folder), "--threads", "2")
        try:
            yield daemon.endpoint
        finally:
            assert daemon.stop() == 0, daemon.log()


@pytest.fixture(scope="session")
def tls() -> Iterator[dict[str, str]]:
    """A daemon over TCP: what its clients need to know, by name."""
    from harness import Daemon, tcp_endpoint
    from operators import run_eagled
    from pki import Authority

    with TemporaryDirectory(prefix="eagle-") as name:
        folder = Path(name)
        authority = Authority(folder / "authority", "Birds")
        certificate, key = authority.sign("server", hosts="DNS:localhost,IP:127.0.0.1")
        key.chmod(0o600)
        made = run_eagled("--new-token", "alice").stdout
        token, line = re.findall(r"^(?:token|line)[^:]*.*?: (.+)$", made, re.MULTILINE)
        tokens = folder / "tokens"
        tokens.write_text(line + "\n")
        tokens.chmod(0o600)
        listen = ("--listen", "dns:localhost:0", "--tls-cert", str(certificate), "--tls-key", str(key))
        daemon = Daemon(folder, *listen, "--tokens", str(tokens))
        try:
            port = tcp_endpoint(daemon).rpartition(":")[2]
            known = {"ca": authority.ca, "certificate": certificate, "key": key, "tokens": tokens}
            yield {**{name: str(path) for name, path in known.items()}, "token": token, "port": port}
        finally:
            assert daemon.stop() == 0, daemon.log()
