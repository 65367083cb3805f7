"""A Debian root of a few packages, and programs in copies of it as a container would run them."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from harness import ROOT
from machine import MissingTool, may_mount

PLAIN = ROOT / "build/deploy/root"
DEBIAN = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,tini"
UID = 7411
LONGEST_S = 900.0  # with the download, on a machine that is busy


def plain_root() -> Path:
    """Made once: what debootstrap gives, with Python and tini."""
    if not may_mount():
        raise MissingTool("making a Debian root needs root, with CAP_SYS_ADMIN")
    if not (PLAIN / "made").exists():
        shutil.rmtree(PLAIN, ignore_errors=True)
        PLAIN.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", PLAIN, DEBIAN],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
        (PLAIN / "made").touch()
    return PLAIN


def confined(root: Path, *options: str, writable: bool = False) -> list[str]:
    """The beginning of a command that runs in the root as UID, without network and capabilities."""
    return [
        "bwrap",
        "--bind" if writable else "--ro-bind",
        str(root),
        "/",
        *("--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"),
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--as-pid-1", "--die-with-parent"),
        *("--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/tmp"),
        *("--chdir", "/"),
        *options,
        # The user is the real one, as in a container without a user namespace.
        *("setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"),
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
    ]


def end_confined(program: "subprocess.Popen[bytes]") -> None:
    """All of it: bwrap's child is the first process of its namespace. A change of user takes --die-with-parent away."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
    program.kill()
    program.wait()


def run_in(root: Path, script: str, *options: str, timeout_s: float = 170.0) -> str:
    """What a shell script says in there; it must end well."""
    ran = subprocess.run(
        [*confined(root, *options), "sh", "-euc", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert ran.returncode == 0, f"ended with {ran.returncode}:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout
