"""How costs grow: launch, chains, stepping and reductions with samples, builds with nodes, rates with sessions, all
with threads. Writes docs/measurements/scaling.md.

    .venv/bin/python tests/bench/scaling.py [--repeats 5] [--threads 1,2] [--parts PART,...] [--write]
                                                [--processor-time]

An exponent is the slope of the least-squares line through the logarithms of the minima over the sizes that it names: 1
is proportional, 0 is "does not grow". The part ``walls`` says where the time of the largest sizes goes: samples of
`perf record` over this process and the daemon. They are of processor time, so that others on the machine show little.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import eagle
import machine
import numpy as np
from cases import line05_build
from cases.chains import affine, scratch_form, stored_form, void
from cases.inputs import chain_start, reals
from cases.oscillators import run_form
from frame import DAEMON, IN_PROCESS, ROOT, Bench, Clock, Form, environment_of_children
from report import shown
from twins import EULER

PAGE = ROOT / "docs/measurements/scaling.md"
SAMPLES = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
Point = tuple[int, float]


def least(form: Form, repeats: int) -> float:
    form.measure()
    return min(form.measure() for _ in range(repeats))


def counted(n: int, full: int = 2000) -> int:
    """Launches in one measurement: many where one is short."""
    return max(1, min(full, 2_000_000 // n))


def launch_form(name: str, session: Any, n: int) -> Form:
    x, y = session.asarray(chain_start(n)), session.zeros(n)
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=1.5, b=0.25)).build()
    count = counted(n)
    return Form(name, lambda: [g.launch() for _ in range(count)] and None, units=count)


def sum_form(name: str, session: Any, n: int) -> Form:
    x, out = session.asarray(reals(n)), session.zeros(1)
    g = eagle.Graph(session).add_node(eagle.reduce(x, out)).build()
    count = counted(n)
    return Form(name, lambda: void(g.launch(count)), units=count)


def stored(name: str, session: Any, n: int) -> Form:
    return stored_form(name, session, n, counted(16 * n))


def scratch(name: str, session: Any, n: int) -> Form:
    return scratch_form(name, session, n, counted(16 * n))


def stepping(spread: bool) -> Callable[[str, Any, int], Form]:
    return lambda name, session, n: run_form(name, session, n, EULER, spread)


# What, how, sizes. Seventeen planes of 1e7 samples would be 1.4 GB, and 1e6 oscillators are a second.
GROWING: list[tuple[str, Callable[[str, Any, int], Form], list[int]]] = [
    ("launch(1), one node", launch_form, SAMPLES),
    ("chain of 16, every plane stored", stored, SAMPLES[:-1]),
    ("chain of 16, scratch between", scratch, SAMPLES[:-1]),
    ("sum in the fixed order", sum_form, SAMPLES),
    ("oscillators, 1,000 steps, together", stepping(False), SAMPLES[:-1]),
    ("oscillators, 1,000 steps, spread", stepping(True), SAMPLES[:-2]),
]


def exponents(points: Sequence[Point]) -> str:
    """Of the smaller and of the larger sizes: where they differ, another price has taken over."""
    half = max(2, len(points) // 2)
    parts = [points[: len(points) - half + 1], points[-half:]]
    return " / ".join(f"{line05_build.exponent([n for n, _ in p], [s for _, s in p]):.2f}" for p in parts)


def table(sizes: Sequence[int], rows: Sequence[tuple[str, Sequence[Point]]], what: str) -> str:
    lines = [f"| | {' | '.join(f'{n:,}' for n in sizes)} | exponent, smaller / larger {what} |"]
    lines.append("| --- |" + " --- |" * (len(sizes) + 1))
    for name, points in rows:
        by_size = dict(points)
        cells = [shown(by_size[n], "s") if n in by_size else "" for n in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} | {exponents(points)} |")
    return "\n".join(lines)


def by_samples(benches: dict[int, Bench], repeats: int) -> str:
    rows = []
    for what, make, sizes in GROWING:
        for threads, bench in benches.items():
            for where, session in bench.sessions():
                points = []
                for n in sizes:
                    points.append((n, least(make(where, session, n), repeats)))
                place = "in process" if where == IN_PROCESS else "daemon"
                rows.append((f"{what}; {place}, {threads} thread{'s' if threads > 1 else ''}", points))
                print(rows[-1][0], [f"{n:,}: {shown(s, 's')}" for n, s in points], flush=True)
    return table(SAMPLES, rows, "sizes")


def by_nodes(bench: Bench, repeats: int, most: int) -> str:
    rows = []
    sizes = [nodes for nodes in line05_build.SIZES if nodes <= most]
    for title, (make, _, _) in line05_build.MAKERS.items():
        for where, session in bench.sessions():
            points = []
            for nodes in sizes:
                seconds = [line05_build.seconds_to_build(make, session, nodes, False) for _ in range(repeats)]
                points.append((nodes, min(seconds)))
            rows.append((f"build, {title}; {'in process' if where == IN_PROCESS else 'daemon'}", points))
            print(rows[-1][0], [f"{n:,}: {shown(s, 's')}" for n, s in points], flush=True)
    return table(sizes, rows, "graphs")


def launched_by_many(endpoint: str, sessions: int, seconds: float) -> float:
    """Seconds a launch of all together: a thread and a session each, one node of 8 samples, one launch in flight."""
    opened = [eagle.connect(endpoint) for _ in range(sessions)]
    graphs = []
    for session in opened:
        x = session.zeros(8)
        graphs.append(eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=session.zeros(8), a=1.0, b=1.0)).build())
    done, ready, stop = [0] * sessions, threading.Barrier(sessions + 1), threading.Event()

    def launch(i: int) -> None:
        graphs[i].launch()
        ready.wait()
        while not stop.is_set():
            graphs[i].launch()
            done[i] += 1

    threads = [threading.Thread(target=launch, args=(i,)) for i in range(sessions)]
    for thread in threads:
        thread.start()
    ready.wait()
    begin = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    for session in opened:
        session.close()
    return took / max(1, sum(done))


def by_sessions(bench: Bench, repeats: int) -> str:
    points = []
    for sessions in (1, 4, 16, 64):
        points.append((sessions, min(launched_by_many(bench.daemon.endpoint, sessions, 0.3) for _ in range(repeats))))
    print("launches of sessions", points, flush=True)
    return table([n for n, _ in points], [("seconds a launch of all together, from Python threads", points)], "counts")


# ---- where the time goes


def perf_of(seconds: float, work: Callable[[], object], pids: Sequence[int]) -> str | None:
    """The symbols that take most of these processes while `work` runs again and again; None where perf cannot."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        command = ["perf", "record", "-q", "-F", "999", "-o", data, "-p", ",".join(map(str, pids))]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            work()
        recorder.send_signal(2)
        recorder.wait()
        if not Path(data).exists():
            return None
        report = ["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol"]
        said = subprocess.run(report, capture_output=True, text=True, check=False).stdout
    shares: Counter[str] = Counter()
    for share, where, symbol in re.findall(r"^\s+(\d+\.\d+)%\s+(\S.*?)\s+\[.\] (\S+)", said, re.MULTILINE):
        compiled = "eagle-code" in where
        shares["compiled kernels" if compiled else f"{where}  {re.sub('^0x.*', '(no symbol)', symbol)}"] += float(share)
    return "\n".join(f"{share:5.1f}%  {name}" for name, share in shares.most_common(6)) or None


def walls(bench: Bench, most: int) -> str:
    """Profiles of what is largest, each with the processes that work."""
    pids = [os.getpid(), bench.daemon.pid]
    parts = []
    builds = {}
    for title, (make, _, _) in line05_build.MAKERS.items():
        build = lambda make=make: line05_build.seconds_to_build(make, bench.there, most, False)  # noqa: E731
        builds[f"adding and building {most:,} nodes, {title}, daemon"] = build
    works: dict[str, Callable[[], object]] = {
        "launch(1) of 1,024 samples, daemon": launch_form(DAEMON, bench.there, 1024).measure,
        "chain of 16 stored, 1,000,000 samples, in process": stored(IN_PROCESS, bench.here, 10**6).measure,
        "oscillators spread, 100,000, in process": stepping(True)(IN_PROCESS, bench.here, 10**5).measure,
        "sum of 10,000,000, in process": sum_form(IN_PROCESS, bench.here, 10**7).measure,
        **builds,
    }
    for title, work in works.items():
        work()
        found = perf_of(3.0, work, pids)
        parts.append(f"{title}:\n\n```\n{found or 'perf records nothing on this machine'}\n```")
        print(parts[-1], flush=True)
    return "\n\n".join(parts)


def launch_price(bench: Bench) -> str:
    """What a launch costs outside of the engine: the caller's clock against the engine's own."""
    rows = []
    for where, session in bench.sessions():
        x, y = session.asarray(chain_start(1024)), session.zeros(1024)
        g = eagle.Graph(session).add(eagle.plan(affine).bind(x=x, y=y, a=1.5, b=0.25)).build()
        outside, inside = [], []
        for _ in range(2000):
            begin = time.perf_counter()
            g.launch()
            outside.append(time.perf_counter() - begin)
            assert g.report is not None
            inside.append(g.report.wall_s)
        caller, engine = float(np.median(outside)), float(np.median(inside))
        rows.append(f"| {where} | {shown(caller, 's')} | {shown(engine, 's')} | {engine / caller:.0%} |")
    head = "| launch(1), 1,024 samples, medians | caller's clock | engine's own | share |\n| --- | --- | --- | --- |"
    return head + "\n" + "\n".join(rows)


NEED_THE_TIME = ("sessions", "price")  # that passes: they are about waiting


def largest(benches: dict[int, Bench]) -> Bench:
    return benches[max(benches)]


# By name: the section's title, and what fills it.
PARTS: dict[str, tuple[str, Callable[[dict[int, Bench], int, int], str]]] = {
    "samples": ("With samples", lambda benches, repeats, _: by_samples(benches, repeats)),
    "nodes": ("With nodes", lambda benches, repeats, most: by_nodes(largest(benches), repeats, most)),
    "sessions": ("With sessions", lambda benches, repeats, _: by_sessions(largest(benches), repeats)),
    "price": ("What a launch costs outside of the engine", lambda benches, _, __: launch_price(largest(benches))),
    "walls": ("Where the time goes", lambda benches, _, most: walls(largest(benches), most)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="How costs grow with samples, nodes, sessions and threads.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", default="1,2", help="teams to compare")
    parser.add_argument("--most-nodes", type=int, default=30_000, help="of the largest graph (default 30000)")
    parser.add_argument("--write", action="store_true", help="write docs/measurements/scaling.md")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--processor-time", action="store_true", help="of this process: lines in process alone")
    options = parser.parse_args()
    if options.processor_time:
        Clock.take_processor_time()
    teams = [int(word) for word in options.threads.split(",")]
    wanted = options.parts.split(",")
    if options.processor_time:
        wanted = [name for name in wanted if name not in NEED_THE_TIME]
    if not set(wanted) <= set(PARTS):
        parser.error(f"--parts {options.parts}: expected some of {', '.join(PARTS)}")
    os.environ.update({k: v for k, v in environment_of_children().items() if k.startswith("EAGLE")})
    benches = {n: Bench(threads=n, repeats=options.repeats, smoke=False, peers={}) for n in teams}
    about = machine.about(max(teams), options.repeats, {})
    try:
        parts = {PARTS[name][0]: PARTS[name][1](benches, options.repeats, options.most_nodes) for name in wanted}
    finally:
        for bench in benches.values():
            bench.close()
    load = os.getloadavg()[0]
    command = "tests/bench/scaling.py" + " ".join(["", *sys.argv[1:]])
    head = f"`{command}`. {machine.text(about)}; {load:.1f} after. Minima of {options.repeats}.\n"
    measured = "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())
    if options.write:
        kept = PAGE.read_text().split("<!-- measured -->")[0] if PAGE.exists() else "# Scaling\n\n"
        PAGE.write_text(f"{kept}<!-- measured -->\n\n{head}\n{measured}\n")
    else:
        print(f"\n{head}\n{measured}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
