"""A machine that systemd boots over a copy of this one's files: an overlay in memory, of which nothing stays.

It runs commands in their order, as root, and then goes. Needs root, overlayfs and systemd-nspawn.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BOOT_S = 170
FOLDER = "/var/lib/eagle-test"


class MissingTool(Exception):
    """What this machine lacks; anything else that goes wrong is a failure."""


def may_mount() -> bool:
    """Whether this process is root with CAP_SYS_ADMIN, which in a container it may not be."""
    granted = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return os.geteuid() == 0 and granted is not None and int(granted.group(1), 16) >> 21 & 1 == 1


@contextmanager
def overlay() -> Iterator[Path]:
    """This machine's files, for writing, as a folder."""
    if not may_mount():
        raise MissingTool("booting a machine needs root, with CAP_SYS_ADMIN")
    for program in ("systemd-nspawn", "systemctl", "journalctl", "curl", "openssl"):
        if shutil.which(program) is None:
            raise MissingTool(f"no {program}: apt-get install systemd systemd-container curl openssl")
    with tempfile.TemporaryDirectory(prefix="eagle-machine-") as folder:
        memory, root = Path(folder) / "memory", Path(folder) / "root"
        memory.mkdir()
        root.mkdir()
        mounted: list[Path] = []
        try:
            _mount(["-t", "tmpfs", "tmpfs", str(memory)], memory, mounted)
            for name in ("upper", "work"):
                (memory / name).mkdir()
            layers = f"lowerdir=/,upperdir={memory}/upper,workdir={memory}/work"
            _mount(["-t", "overlay", "overlay", "-o", layers, str(root)], root, mounted)
            yield root
        finally:
            for point in reversed(mounted):
                subprocess.run(["umount", "--lazy", point], check=False)


def _mount(arguments: list[str], point: Path, mounted: list[Path]) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingTool(f"even root may not mount here: mount {' '.join(arguments)}: {done.stderr.strip()}")
    mounted.append(point)


# The last thing that the machine does is to turn itself off, whatever came before.
UNIT = """\
[Unit]
After=basic.target dbus.socket
Wants=dbus.socket
[Service]
Type=oneshot
Environment=HOME=/root LANG=C.UTF-8
WorkingDirectory={here}
ExecStart=/bin/bash {script}
ExecStopPost=/bin/systemctl poweroff --force --force
"""


def run_in_machine(root: Path, files: dict[str, str], here: Path, keep: str, longest_s: float = BOOT_S) -> str:
    """Boots with these files in FOLDER, runs that which is called "script" in `here`, and returns what is in the file
    `keep` of FOLDER then. Units that this machine has enabled are not started: the boot goes to the script and no
    further."""
    folder = root / FOLDER.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    (root / "etc/systemd/system/eagle-test.service").write_text(UNIT.format(here=here, script=f"{FOLDER}/script"))
    start = ["systemd-nspawn", f"--directory={root}", "--register=no", "--keep-unit", "--quiet"]
    nothing = [*start, "/bin/true"]
    tried = subprocess.run(nothing, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    if tried.returncode != 0:  # not even a program in a container of its own: there is nothing to boot
        raise MissingTool(f"even root may not start containers here: {tried.stderr.decode(errors='replace')[-500:]}")
    boot = [*start, "--boot"]
    kept = folder / keep
    try:
        done = subprocess.run(
            [*boot, "systemd.unit=eagle-test.service", "systemd.show_status=false"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        so_far = kept.read_text(errors="replace") if kept.exists() else "nothing"
        raise OSError(f"the machine did not end within {longest_s:.0f} s; so far:\n{so_far}") from late
    if not kept.exists():
        raise OSError(f"the machine did not boot: {(done.stdout + done.stderr).decode(errors='replace')[-2000:]}")
    return kept.read_text(errors="replace")
