"""What a GPU costs through eagle, beside other packages there and beside our own CPU.

    .venv/bin/python tests/bench/gpu/run.py [--device cuda:0] [--only GROUP[,GROUP]] [--peers] [--json FILE]
                                            [--repeats 9] [--threads T] [--smoke]

Groups: launches, replays, copies, kernels, runs, engine (``gpu_rows.py``). Every form's answer is compared first: ours
on the GPU with ours on the CPU by their bits, other packages by a tolerance. Then all take turns; minimum, median, and
how many times the minimum of ours in process each takes. ``--peers`` starts raptor-eagle, JAX and Warp on the GPU where
``tests/bench/peers.sh --gpu`` has installed them; what is missing is named. Exit status: 0; 1 where an answer is wrong.

With the fake driver of the tests it runs, and its times mean nothing: ``--smoke`` is for that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import machine  # noqa: E402
import report  # noqa: E402
from frame import IN_PROCESS, Bench, Measured, Unavailable, WrongAnswer, measure  # noqa: E402

PEERS = ("raptor-eagle", "jax", "warp")


def arguments(groups: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a GPU costs through eagle, beside others.")
    parser.add_argument("--device", default="cuda:0", help="a GPU of this host (default cuda:0)")
    parser.add_argument("--only", metavar="GROUP[,GROUP]", help=f"of {', '.join(groups)}")
    parser.add_argument("--peers", action="store_true", help="other packages too (tests/bench/peers.sh --gpu)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value there")
    parser.add_argument("--repeats", type=int, default=9, help="of each form (default 9)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of every team on the CPU")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, once: whether every row gives its answers")
    found = parser.parse_args()
    found.only = found.only.split(",") if found.only else groups
    if not set(found.only) <= set(groups):
        parser.error(f"--only {','.join(found.only)}: expected {', '.join(groups)}")
    if found.repeats < 1 or found.threads < 1:
        parser.error("--repeats and --threads start at 1")
    if found.smoke and found.peers:
        parser.error("--smoke compares tiny runs of our own: leave --peers out")
    return found


def gpu_of(device: str) -> str:
    """Its name, driver and memory, as the host names them; SystemExit where there is none."""
    import eagle

    with eagle.local() as session:
        try:
            session.zeros(1, device=device)
        except eagle.EagleError as error:
            raise SystemExit(f"{device}: {error}") from None
    from harness import eaglectl

    findings = json.loads(eaglectl("--json", "doctor", "--all", check=False).stdout)["findings"]
    wanted = {"gpu.driver", f"gpu.{device.replace(':', '')}"}
    return "; ".join(finding["what"] for finding in findings if finding["id"] in wanted) or device


def text_of(measured: Measured) -> str:
    """Minimum (median), and the ratio of minima to ours in process, where there is one: rates the other way round."""
    unit = measured.row.unit
    ours = measured.values.get(IN_PROCESS)
    best = min if unit == "s" else max
    lines = [f"  {measured.row.title}"]
    for name, values in measured.values.items():
        ratio = ""
        if ours and name != IN_PROCESS:
            found = best(values) / best(ours)
            ratio = f"   {found if unit == 's' else 1 / found:.3g} x the time"
        shown = [report.shown(value, unit) for value in (best(values), statistics.median(values))]
        lines.append(f"    {name:34} {shown[0]:>12} ({shown[1]}){ratio}")
    return "\n".join(lines)


def main() -> int:
    from gpu_rows import GROUPS as groups

    options = arguments(list(groups))
    peers: dict[str, Any] = {}
    if options.peers:
        from peers.driver import start_peers

        peers = start_peers(PEERS, options.device)
    gpu = gpu_of(options.device)
    about = machine.about(options.threads, options.repeats, {name: peer.version for name, peer in peers.items()})
    print(f"{gpu}\n{machine.text(about)}", flush=True)
    bench = Bench(threads=options.threads, repeats=options.repeats, smoke=options.smoke, peers=peers)
    measured: list[Measured] = []
    wrong: list[str] = []
    try:
        for number, group in enumerate(options.only, 1):
            print(f"\n{group}", flush=True)
            try:
                for row in groups[group](bench, options.device):
                    found = measure(bench, number, row)
                    measured.append(found)
                    print(f"  {row.title}: right" if options.smoke else text_of(found), flush=True)
            except (WrongAnswer, Unavailable) as error:
                wrong.append(f"{group}: {error}")
                print(f"  {type(error).__name__}: {error}", flush=True)
            except Exception as error:
                wrong.append(f"{group}: {type(error).__name__}: {error}")
                traceback.print_exc()
    except KeyboardInterrupt:
        wrong.append("interrupted: what is behind is missing")
    finally:
        bench.close()
        for peer in peers.values():
            peer.close()
    if options.json is not None:
        rows = [found.as_json() for found in measured]
        about["gpu"] = gpu
        options.json.write_text(
            json.dumps({"about": about, "rows": rows, "said": bench.said, "wrong": wrong}, indent=1)
        )
    print("\n" + ("\n".join(wrong) or f"{len(measured)} rows gave their answers"))
    return 1 if wrong or not measured else 0


if __name__ == "__main__":
    sys.exit(main())
