"""The main job, end to end: what it gives, where it ran, and what travelled."""

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from harness import HERE, PATIENCE_S, compile_c, cpu_seconds, descendants, maps_llvm, python_script

# From a plain C++ loop without contraction; the same digits are in the README.
FIRST_THREE = [0.5405728050653854, 0.5405711223621569, 0.540569439656762]
SOCKET_BYTES = 64 * 1024

PLAIN_LOOP = """
void oscillators(long n, double *x, double *v, const double *omega, double dt, double t_end, long max_steps) {
  for (long i = 0; i < n; ++i) {
    double t = 0;
    for (long step = 0; step < max_steps && !(t >= t_end); ++step) {
      const double x_next = x[i] + dt * v[i];
      v[i] = v[i] - dt * omega[i] * omega[i] * x[i];
      x[i] = x_next;
      t = t + dt;
    }
  }
}
"""


@dataclass
class Outcome:
    report: dict
    x: np.ndarray
    v: np.ndarray
    done: np.ndarray


def run(where: str, folder: Path, environment: dict[str, str]) -> Outcome:
    folder.mkdir()
    process = python_script(HERE / "main_job.py", where, str(folder), environment=environment)
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == 0, f"{out}\n{err}"
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("x", "v", "done")}
    report = json.loads((folder / "report.json").read_text())
    assert report["pid"] == process.pid
    return Outcome(report, **arrays)


def check_values(outcome: Outcome, folder: Path) -> None:
    assert outcome.report["status"] == "finished"
    assert outcome.report["steps"] == 1000
    assert outcome.report["finished"] == 1_000_000
    assert outcome.done.all()
    assert outcome.x[:3].tolist() == FIRST_THREE
    # Each sixteenth sample against the plain loop: all of them would take it seconds.
    x, v = np.full(62_500, 1.0), np.zeros(62_500)
    omega = np.ascontiguousarray(np.linspace(1, 3, 1_000_000)[::16])
    double_pointer = ctypes.POINTER(ctypes.c_double)
    pointers = [array.ctypes.data_as(double_pointer) for array in (x, v, omega)]
    loop = compile_c(folder, "oscillators", PLAIN_LOOP).oscillators
    loop(ctypes.c_long(x.size), *pointers, ctypes.c_double(1e-3), ctypes.c_double(1.0), ctypes.c_long(2000))
    assert x.tobytes() == outcome.x[::16].tobytes()
    assert v.tobytes() == outcome.v[::16].tobytes()


def test_runs_in_the_daemon_and_gives_the_bits_of_a_plain_loop(daemon, tmp_path):
    used_before = cpu_seconds(daemon.pid)
    outcome = run("connect", tmp_path / "daemon", {"EAGLE_ENDPOINT": daemon.endpoint})
    used = cpu_seconds(daemon.pid) - used_before
    check_values(outcome, tmp_path)

    report = outcome.report
    assert report["host_pid"] == daemon.pid != report["pid"]

    # The work is in the daemon's processor time. What it must be about comes from the same job in process; the
    # client only waited. Sums of processor time, not of the clock, so a busy machine changes nothing.
    local = run("local", tmp_path / "local", {})
    assert used >= 0.3 * local.report["cpu_s"], "the daemon worked less than the run takes"
    assert report["cpu_s"] <= 0.5 * used, "the client worked while the daemon should have"
    assert report["wall_s"] * report["threads"] >= 0.5 * used, "the run says it was shorter than its processor time"

    # The compiler is in neither, but in the helper that the daemon keeps warm: so the name is the right one.
    assert not report["llvm_mapped"]
    assert not maps_llvm(daemon.pid)
    assert any(maps_llvm(pid) for pid in descendants(daemon.pid))


def test_runs_in_process_with_the_same_bits(daemon, tmp_path):
    local = run("local", tmp_path / "local", {})
    check_values(local, tmp_path)
    assert local.report["host_pid"] == local.report["pid"]
    assert not local.report["llvm_mapped"]

    remote = run("connect", tmp_path / "daemon", {"EAGLE_ENDPOINT": daemon.endpoint})
    for name in ("x", "v", "done"):
        assert getattr(local, name).tobytes() == getattr(remote, name).tobytes(), name


def test_arrays_do_not_travel(daemon, socket_meter, tmp_path):
    meter = tmp_path / "meter"
    environment = {"EAGLE_ENDPOINT": daemon.endpoint, "LD_PRELOAD": str(socket_meter), "SOCKET_METER": str(meter)}
    outcome = run("connect", tmp_path / "daemon", environment)
    assert outcome.x[:3].tolist() == FIRST_THREE
    sent, received = map(int, Path(f"{meter}.{outcome.report['pid']}").read_text().split())
    print(f"over sockets: {sent} bytes sent, {received} received")
    assert sent > 500, "the meter saw next to nothing: does it still count what gRPC calls?"
    assert received > 500
    assert sent + received < SOCKET_BYTES


@pytest.mark.parametrize("size", [1, 4096, 1_000_003])
def test_socket_meter_counts_every_byte(socket_meter, tmp_path, size):
    """Sent one way through each family of calls, and read back; a pipe is no socket."""
    program = f"""
import os, socket, threading
a, b = socket.socketpair()
data = bytes({size})
def drain():
    left = 3 * len(data)
    while left: left -= len(b.recv(65536))
reader = threading.Thread(target=drain)
reader.start()
a.sendall(data)
at = 0
while at < len(data): at += os.write(a.fileno(), data[at:])
at = 0
while at < len(data): at += a.sendmsg([data[at:]])
reader.join()
r, w = os.pipe()
os.write(w, b"not counted"); os.read(r, 100)
print(os.getpid())
"""
    environment = {"LD_PRELOAD": str(socket_meter), "SOCKET_METER": str(tmp_path / "meter")}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    counted = (tmp_path / f"meter.{result.stdout.strip()}").read_text().split()
    assert counted == [str(3 * size)] * 2
