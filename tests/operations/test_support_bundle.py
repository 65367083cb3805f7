"""The archive for whoever is asked for help: what is in it, and what is not."""

import io
import json
import tarfile
from pathlib import Path

import eagle
from harness import Daemon
from operators import run_eagled, service_of, write_config
from trace_events import check_trace
from work import add


def test_a_bundle_has_what_helps_and_no_secrets(short_path: Path) -> None:
    lines = run_eagled("--new-token", "ops").stdout.splitlines()
    secret, digest = lines[0].rpartition(": ")[2], lines[1].rpartition(": ")[2].split()[0]
    tokens, config = short_path / "tokens", short_path / "eagled.toml"
    tokens.write_text(lines[1].rpartition(": ")[2] + "\n")
    tokens.chmod(0o600)
    write_config(config, "threads = 1", "[tokens]", f'file = "{tokens}"')
    daemon = Daemon(short_path, "--config", str(config), "--listen", "dns:127.0.0.1:0")
    try:
        tcp = next(word for word in daemon.log().split() if word.startswith("dns:127.0.0.1:")).rstrip(",")
        with eagle.connect(daemon.endpoint) as session, eagle.connect(tcp, auth=secret), service_of(daemon) as admin:
            x = session.zeros(8)
            eagle.Graph(session, name="pictured").add(eagle.plan(add).bind(x=x, by=1.0), name="adds").build().launch()
            archive = b"".join(chunk.data for chunk in admin.call("Admin.SupportBundle"))
            resume = session._core.resume_token() if hasattr(session._core, "resume_token") else ""
    finally:
        assert daemon.stop() == 0, daemon.log()

    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {member.name: tar.extractfile(member).read().decode() for member in tar.getmembers()}
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
