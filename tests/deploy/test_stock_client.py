"""A client that grpcio's tools make of proto/, as on another system: TLS, a token, and no package `eagle`."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from harness import EAGLED, PATIENCE_S, ROOT, Daemon

HERE = Path(__file__).resolve().parent


def made(*command: object) -> str:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout


def test_stubs_of_grpcio_launch_submit_schedule_and_draw(short_path: Path, tmp_path: Path) -> None:
    stubs, site = tmp_path / "stubs", tmp_path / "site"
    stubs.mkdir()
    site.mkdir()
    protos = sorted((ROOT / "proto/eagle/v1").glob("*.proto"))
    made(
        sys.executable, "-m", "grpc_tools.protoc", "-I", ROOT / "proto",
        f"--python_out={stubs}", f"--grpc_python_out={stubs}", *protos,
    )  # fmt: skip
    for name in ("grpc", "google", "typing_extensions.py"):  # all that such a client has installed
        (site / name).symlink_to(Path(sysconfig.get_paths()["platlib"]) / name)
    key, certificate, tokens = (short_path / name for name in ("key.pem", "cert.pem", "tokens"))
    made(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
    )  # fmt: skip
    key.chmod(0o600)
    said = made(EAGLED, "--new-token", "laptop")
    token, line = (re.search(rf"^{word}.*: (\S+.*)$", said, re.MULTILINE).group(1) for word in ("token", "line"))
    tokens.write_text(line + "\n")
    tokens.chmod(0o600)
    daemon = Daemon(
        short_path, "--listen", "dns:localhost:0",
        "--tls-cert", str(certificate), "--tls-key", str(key), "--tokens", str(tokens),
    )  # fmt: skip
    try:
        port = re.search(r"serves .*?dns:[^\s,]+:(\d+)", wait_for_line(daemon)).group(1)
        ran = subprocess.run(
            [f"{sys.base_prefix}/bin/python3", "-S", HERE / "stock_client.py",
             stubs, f"localhost:{port}", certificate, token],
            env={"PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )  # fmt: skip
    finally:
        assert daemon.stop() == 0, daemon.log()
    assert ran.returncode == 0, ran.stdout + ran.stderr + daemon.log()
    assert re.findall(r"^(\w+):", ran.stdout, re.MULTILINE) == ["launch", "picture", "submit"], ran.stdout


def wait_for_line(daemon: Daemon) -> str:
    from harness import wait_until

    wait_until(lambda: "dns:localhost" in daemon.log() and "serves" in daemon.log(), "the daemon to serve")
    return next(line for line in daemon.log().splitlines() if "serves" in line)
