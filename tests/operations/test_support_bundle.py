"""The archive for whoever is asked for help: what is in it, and what is not."""

import io
import json
import os
import re
import signal
import tarfile
from pathlib import Path

import eagle
from harness import Beside, Daemon, children, tcp_endpoint, wait_until
from operators import run_eagled, service_of, wait_for_log, write_config
from trace_events import check_trace
from work import add


def files_of(archive: bytes) -> dict[str, str]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member)
            assert content is not None
            files[member.name] = content.read().decode()
    return files


def test_a_bundle_has_what_helps_and_no_secrets(short_path: Path) -> None:
    lines = run_eagled("--new-token", "ops").stdout.splitlines()
    secret, digest = lines[0].rpartition(": ")[2], lines[1].rpartition(": ")[2].split()[0]
    tokens, config = short_path / "tokens", short_path / "eagled.toml"
    tokens.write_text(lines[1].rpartition(": ")[2] + "\n")
    tokens.chmod(0o600)
    write_config(config, "threads = 1", "[tokens]", f'file = "{tokens}"')
    daemon = Daemon(short_path, "--config", str(config), "--listen", "dns:127.0.0.1:0")
    try:
        tcp = tcp_endpoint(daemon)
        with eagle.connect(daemon.endpoint) as session, eagle.connect(tcp, auth=secret), service_of(daemon) as admin:
            x = session.zeros(8)
            graph = eagle.Graph(session, name="pictured").add(eagle.plan(add).bind(x=x, by=1.0), name="adds").build()
            graph.launch()
            archive = b"".join(chunk.data for chunk in admin.call("Admin.SupportBundle"))
            resume = session._core.resume_token() if hasattr(session._core, "resume_token") else ""
    finally:
        assert daemon.stop() == 0, daemon.log()

    files = files_of(archive)
    pictures = [name for name in files if name.startswith("eagled-support/graphs/")]
    assert set(files) - set(pictures) == {
        f"eagled-support/{name}"
        for name in (
            "versions.txt",
            "configuration.toml",
            "log.txt",
            "metrics.txt",
            "timeline.json",
            "sessions.txt",
            "strikes.txt",
        )
    }
    assert "adds" in files[pictures[0]]
    assert "threads = 1  # file" in files["eagled-support/configuration.toml"]
    assert "opened by" in files["eagled-support/log.txt"]
    assert "eagled_launches_total" in files["eagled-support/metrics.txt"]
    assert "token:ops" in files["eagled-support/sessions.txt"]
    check_trace(json.loads(files["eagled-support/timeline.json"]))
    for hidden in (secret, digest, resume):
        assert not hidden or hidden.encode() not in archive


def test_a_bundle_after_a_crash_tells_of_what_was_before(short_path: Path) -> None:
    """What the dead worker said, the graphs that nobody has launched since, and which graph it died of."""
    config = short_path / "eagled.toml"
    write_config(config, "threads = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        with eagle.connect(daemon.endpoint) as session:
            x = session.zeros(8)
            deadly = eagle.Graph(session, name="deadly").add(eagle.plan(add).bind(x=x, by=1.0), name="dies").build()
            idle = eagle.Graph(session, name="idle").add(eagle.plan(add).bind(x=x, by=1.0), name="rests").build()
            wait_for_log(daemon, 'built name="idle"')
            write_config(config, "threads = 1", "[limits]", "sessions = 77")
            daemon.process.send_signal(signal.SIGHUP)
            wait_for_log(daemon, "the configuration holds")
            lost = Beside(lambda: deadly.launch(2**50))
            wait_until(lambda: x[0] > 0, "the launch")
            os.kill(children(daemon.process.pid)[0], signal.SIGKILL)
            assert isinstance(lost.result(), eagle.EagleError)
            with service_of(daemon) as admin:
                files = files_of(b"".join(chunk.data for chunk in admin.call("Admin.SupportBundle")))
            assert idle.schedule  # it is there to the end
    finally:
        assert daemon.stop() == 0, daemon.log()
    log = files["eagled-support/log.txt"]
    assert log.index('built name="deadly"') < log.index("starting another") < log.index("takes over")
    pictures = [text for name, text in files.items() if name.startswith("eagled-support/graphs/")]
    assert any("dies" in picture for picture in pictures)
    assert any("rests" in picture and "another worker built it" in picture for picture in pictures)
    assert re.search(r'^[0-9a-f]{32} deaths=1 .*="deadly"$', files["eagled-support/strikes.txt"], re.MULTILINE)
    assert "graphs=2" in files["eagled-support/sessions.txt"]
    assert "sessions = 77  # file" in files["eagled-support/configuration.toml"]
