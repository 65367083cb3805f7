"""Runs the lines of the table of performance: our forms, hand-written twins and other packages in turn.

    .venv/bin/python tests/bench/run.py [--only N[,N]] [--peers] [--json FILE] [--check] [--record]
                                        [--repeats 9] [--threads T] [--smoke]

See tests/bench/README.md. Exit status: 0; 1 where an answer is wrong, or with --check where a ratio misses its bound.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import machine  # noqa: E402
import report  # noqa: E402
from frame import Bench, Clock, Measured, Unavailable, WrongAnswer, measure  # noqa: E402

# Lines whose work, or whose form in process, is computing; the others are about waiting, processes and memory.
IN_PROCESSOR_TIME = range(2, 14)


def cases() -> dict[int, Any]:
    """The lines, by number. Importing them needs the package."""
    names = sorted(path.stem for path in (HERE / "cases").glob("line*.py"))
    found = [importlib.import_module(f"cases.{name}") for name in names]
    return {case.LINE: case for case in found}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the lines of the table of performance.")
    parser.add_argument("--only", metavar="N[,N]", help="these lines")
    parser.add_argument("--peers", action="store_true", help="other packages too (tests/bench/peers.sh installs them)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value there")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a ratio misses its bound; not for CI")
    parser.add_argument("--record", action="store_true", help="append the table to docs/measurements/ratios.md")
    parser.add_argument("--repeats", type=int, default=9, help="of each form (default 9)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of every team")
    parser.add_argument(
        "--processor-time", action="store_true", help="of this process alone: for a machine that others keep busy"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, once: whether every case gives its answers")
    found = parser.parse_args()
    if found.repeats < 1 or found.threads < 1:
        parser.error("--repeats and --threads start at 1")
    if found.smoke and (found.check or found.record):
        parser.error("--smoke measures nothing: leave --check and --record out")
    return found


def chosen(only: str | None, known: dict[int, Any]) -> list[int]:
    if only is None:
        return sorted(known)
    lines = [int(word) if word.strip().isdigit() else -1 for word in only.split(",")]
    if not set(lines) <= set(known):
        raise SystemExit(f"--only {only}: expected lines of the table, {sorted(known)}")
    return lines


def main() -> int:
    options = arguments()
    known = cases()
    if options.processor_time:
        if options.peers:
            raise SystemExit("--processor-time is that of this process: leave --peers out")
        Clock.take_processor_time()
        known = {line: case for line, case in known.items() if line in IN_PROCESSOR_TIME}
    peers: dict[str, Any] = {}
    if options.peers:
        from peers.driver import start_peers

        peers = start_peers()
    about = machine.about(options.threads, options.repeats, {name: peer.version for name, peer in peers.items()})
    print(machine.text(about), flush=True)
    bench = Bench(threads=options.threads, repeats=options.repeats, smoke=options.smoke, peers=peers)
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)  # what was measured is told, and recorded
    measured: list[Measured] = []
    wrong: list[str] = []
    try:
        for number in chosen(options.only, known):
            case = known[number]
            print(f"\n{number}. {case.TITLE}", flush=True)
            try:
                for row in case.rows(bench):
                    found = measure(bench, number, row)
                    measured.append(found)
                    print(f"  {row.title}: right" if options.smoke else report.of_row(found), flush=True)
            except (WrongAnswer, Unavailable) as error:
                wrong.append(f"line {number}: {error}")
                print(f"  {type(error).__name__}: {error}", flush=True)
            except Exception as error:
                wrong.append(f"line {number}: {type(error).__name__}: {error}")
                traceback.print_exc()
    except KeyboardInterrupt:
        wrong.append("interrupted: the lines behind are missing")
    finally:
        bench.close()
        for peer in peers.values():
            peer.close()
    about["load_after"] = os.getloadavg()[0]
    print(f"\nload average {about['load_before']:.1f} before, {about['load_after']:.1f} after")
    if options.json is not None:
        rows = [row.as_json() for row in measured]
        options.json.write_text(
            json.dumps({"about": about, "rows": rows, "said": bench.said, "wrong": wrong}, indent=1)
        )
    if options.smoke:
        print("\n".join(wrong) or f"{len(measured)} rows gave their answers")
        return 1 if wrong else 0
    limits = machine.Limits(about)
    verdict = report.verdict(measured, limits)
    print(report.summary(verdict, wrong))
    if options.record:
        limits.keep(measured)
        report.record(about, measured, verdict, bench.said, wrong)
    return 1 if wrong or (options.check and verdict.missed) else 0


if __name__ == "__main__":
    sys.exit(main())
