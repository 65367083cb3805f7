"""Every command of docs/manual/deploy.md, in its order, in a machine that is booted for it: packages installed by apt,
the real unit with its sandbox, clients over TCP and the socket, C++ programs against the library."""

import re

import pytest
from harness import ROOT
from machine import FOLDER, MissingTool, overlay, run_in_machine
from operators import lacks

PAGE = ROOT / "docs/manual/deploy.md"
LONGEST_S = 850.0  # compilers and pip are at work in it
PRELUDE = f"""
exec >{FOLDER}/report 2>&1
block() {{
  echo "=== block $1"
  bash -euo pipefail {FOLDER}/block-$1 && echo "--- ok" || echo "--- failed $?"
}}
"""
# Beside the page, before it removes the package: a run under the unit's sandbox.
OSCILLATOR = """
systemctl show eagled.service --property=User,NoNewPrivileges,MemoryDenyWriteExecute
cat >/tmp/oscillator.py <<'END'
import os
import numpy as np
import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel


@kernel
def oscillator(
    x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], omega: Scalar, dt: Param, t_end: Param, done: Terminated
):
    x, v = x + dt * v, v - dt * omega * omega * x
    t = t + dt
    done = t >= t_end


with eagle.connect("unix:/run/eagled/eagled.sock") as session:
    N = 1000
    x, v, t = session.full(N, 1.0), session.zeros(N), session.zeros(N)
    omega, done = session.asarray(np.linspace(1, 3, N)), session.zeros(N, dtype=bool)
    result = eagle.simulate(oscillator, max_steps=2000, x=x, v=v, t=t, omega=omega, dt=1e-3, t_end=1.0, done=done)
    print("the oscillator ran under the sandbox:", result.steps, x[0])
END
/opt/client/bin/python /tmp/oscillator.py
"""


def blocks() -> list[str]:
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    upgrade = next(index for index, block in enumerate(found) if "--reinstall" in block)
    return [*found[:upgrade], OSCILLATOR, *found[upgrade:]]


@pytest.mark.timeout(900)
def test_every_command_of_the_page_works_on_a_machine() -> None:
    pieces = blocks()
    assert len(pieces) > 6
    files = {f"block-{number}": piece for number, piece in enumerate(pieces)}
    files["script"] = PRELUDE + "\n".join(f"block {number}" for number in range(len(pieces)))
    try:
        with overlay() as root:
            report = run_in_machine(root, files, ROOT, "report", LONGEST_S)
    except MissingTool as why:
        lacks(str(why))
    outcomes = re.findall(r"^--- (\w+)", report, re.MULTILINE)
    assert outcomes == ["ok"] * len(pieces), report
    assert "the oscillator ran under the sandbox: 1000 0.5405728050653854" in report, report
    assert "MemoryDenyWriteExecute=yes" in report
