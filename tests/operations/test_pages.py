"""Every command of docs/manual/operations.md, in its order, in a machine that is booted for it.

The real unit runs there, with its whole sandbox, under the real systemd.
"""

import re

from harness import BUILD, ROOT
from machine import FOLDER, MissingTool, overlay, run_in_machine
from operators import lacks

PAGE = ROOT / "docs/manual/operations.md"


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


# A block that fails does not end the others: the report names each.
PRELUDE = f"""
exec >{FOLDER}/report 2>&1
block() {{
  echo "=== block $1"
  bash -euo pipefail {FOLDER}/block-$1 && echo "--- ok" || echo "--- failed $?"
}}
"""


# What is looked at beside the page: that the sandbox is the unit's, and that a worker's death is survived in it.
MORE = """
systemctl show eagled.service --property=User,NoNewPrivileges,MemoryDenyWriteExecute,NotifyAccess
client='import sys; sys.path.insert(0, "tests/operations"); sys.path.insert(0, "tests/integration")
import eagle, work
with eagle.connect("unix:/run/eagled/eagled.sock") as session:
    x = session.zeros(100)
    eagle.Graph(session).add(eagle.plan(work.add).bind(x=x, by=2.0)).build().launch()
    assert x.tolist() == [2.0] * 100'
.venv/bin/python -c "$client"
kill -KILL "$(pgrep --exact eagled-worker)"
.venv/bin/python -c "$client"
systemctl is-active eagled.service
oscillator='import sys; sys.path.insert(0, "tests/integration")
import eagle
import numpy as np
from main_job import oscillator
with eagle.connect("unix:/run/eagled/eagled.sock") as session:
    n, seen = 1000, []
    x, v, t = session.full(n, 1.0), session.zeros(n), session.zeros(n)
    omega, done = session.asarray(np.linspace(1, 3, n)), session.zeros(n, dtype=bool)
    result = eagle.simulate(
        oscillator, max_steps=200, x=x, v=v, t=t, omega=omega, dt=1e-2, t_end=1.0, done=done,
        until=lambda: seen.append(float(x[0])), every=1)
    assert result.report.finished == n and result.steps == len(seen), (result, len(seen))
    assert result.report.host.pid != __import__("os").getpid()
    print("the oscillator ran under the sandbox:", result.steps, "steps")'
.venv/bin/python -c "$oscillator"
test "$(systemctl show eagled.service --property=NRestarts --value)" = 0
"""


def test_every_command_of_the_page_works_on_a_machine() -> None:
    pieces = [*blocks(), MORE]
    assert len(pieces) > 10
    build = BUILD.relative_to(ROOT)
    files = {f"block-{number}": piece.replace("build/release/", f"{build}/") for number, piece in enumerate(pieces)}
    files["script"] = PRELUDE + "\n".join(f"block {number}" for number in range(len(pieces)))
    try:
        with overlay() as root:
            report = run_in_machine(root, files, ROOT, "report")
    except MissingTool as why:
        lacks(str(why))
    outcomes = re.findall(r"^--- (\w+)", report, re.MULTILINE)
    assert outcomes == ["ok"] * len(pieces), report
    assert "the oscillator ran under the sandbox" in report
    assert "User=eagled" in report
    assert "MemoryDenyWriteExecute=yes" in report
