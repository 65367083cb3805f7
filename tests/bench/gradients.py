"""Reverse derivatives beside JAX's: line 17 of the table, in one process. Fills docs/measurements/gradients.md.

    build/release/frameworks-venv/bin/python tests/bench/gradients.py [--repeats 15] [--processor-time] [--write]

The environment is that of the gradients suite, which has JAX (tests/gradients/make_venv.sh). With --processor-time the
process keeps to one processor and each form to one thread, and is timed by the processor time of the process: for a
machine that others keep busy. The answers are compared first.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import machine  # noqa: E402
from cases import line17_vjp  # noqa: E402
from frame import IN_PROCESS, OTHER, ROOT, Bench, Clock, Form, Measured, Row, measure  # noqa: E402
from report import shown  # noqa: E402

PAGE = ROOT / "docs/measurements/gradients.md"
ASKED = 3.0  # times as fast as JAX, in process, at 65,536 samples
SIZES = ((65_536, 10), (4_096, 100))
HEAD = """# Reverse derivatives beside JAX's

What `eagle.diff.vjp` makes of one RK4 step of the two-body problem, next to `jax.vjp` of the same step under `jax.jit`
and a derivative written by hand in C++ (`tests/bench/cases/line17_vjp.py`), in one process by turns. Three times JAX's
throughput is asked for at 65,536 samples. Each table was appended by

```sh
build/release/frameworks-venv/bin/python tests/bench/gradients.py --write [--processor-time]
```
"""


def jax_form(n: int, count: int) -> Form:
    import jax_cases

    work = jax_cases.two_body_vjp(n, count, 0)
    return Form("jax", work.run, OTHER, units=count, answer=work.answer, tolerance=1e-12)


def rows(bench: Bench) -> list[Measured]:
    """JAX stands among the forms of this process, so that processor time counts it."""
    found = []
    for n, count in SIZES:
        forms = [line17_vjp.form(name, session, n, count) for name, session in bench.sessions()]
        forms.append(jax_form(n, count))
        try:
            forms.append(line17_vjp.twin(bench, n, count))
        except SystemExit as why:
            bench.say(f"without the twin: {why}")
        found.append(measure(bench, line17_vjp.LINE, Row(f"{n:,}", forms)))
    return found


def table(found: list[Measured], about: dict[str, Any]) -> str:
    lines = [
        f"## {datetime.date.today()}, commit {about['commit']}",
        "",
        machine.text(about),
        "",
        "| samples | form | minimum | median | JAX over it, by minima |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in found:
        for name, values in one.values.items():
            least, middle = shown(min(values), "s"), shown(statistics.median(values), "s")
            lines.append(f"| {one.row.title} | {name} | {least} | {middle} | {one.least('jax') / min(values):.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"append to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.processor_time:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before JAX makes its threads
        Clock.take_processor_time()
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    bench = Bench(threads=len(os.sched_getaffinity(0)), repeats=options.repeats, smoke=False, peers={})
    about = machine.about(bench.threads, options.repeats, {"jax": jax.__version__})
    try:
        found = rows(bench)
    finally:
        bench.close()
    text = table(found, about)
    print(text)
    held = found[0].least("jax") >= ASKED * found[0].least(IN_PROCESS)
    print(f"{ASKED:g} times JAX at {found[0].row.title} samples: {'held' if held else 'MISSED'}")
    if options.write:
        PAGE.write_text((PAGE.read_text() if PAGE.exists() else HEAD) + f"\n{text}\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
