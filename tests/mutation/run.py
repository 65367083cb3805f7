#!/usr/bin/env python3
"""Breaks every branch of the code that decides what overlaps, what waits and what is refused, one at a time, and
looks whether a test notices.

    tests/mutation/run.py [FILE ...] [--build FOLDER] [--jobs N] [--list]

Conditions and each operand of their && and ||, choices (a ? b : c) and loops are made always true or always false;
a refusal that EAGLE_RETURN_IF_ERROR returns is dropped. A break that no test notices is printed with its line; those
that change nothing a user could see (a shortcut to the same answer) are in `equivalent.txt` with the reason.

All breaks are compiled into one copy of the tree, under build/mutation, each behind a switch, so a break costs a run
of the tests and no build. Results are kept there by the hash of the test program: a run that was stopped goes on
where it was. Exit status 1 when a break is neither noticed nor explained, or an explanation is for nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breaks import Break, breaks_in, with_switches

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).resolve().with_name("equivalent.txt")

# What is broken, and the tests that are to notice, the likeliest first.
SUBJECTS = {
    "engine/plane/overlap.cpp": ["overlap_test", "edges_test", "races_test"],
    "engine/graph/races.cpp": ["races_test"],
    "engine/graph/meetings.cpp": ["meetings_test", "edges_test", "races_test"],
    "engine/graph/edges.cpp": ["edges_test", "races_test"],
    "engine/graph/leaf_maker.cpp": ["edges_test", "races_test", "scratch_test"],
    "engine/graph/read_launch.cpp": ["read_launch_test", "read_test", "hostile_graph_test"],
    "engine/graph/read_counter.cpp": ["read_counter_test"],
    "engine/graph/read.cpp": ["read_test", "read_counter_test", "read_copy_test", "scratch_test", "hostile_graph_test"],
    "engine/graph/read_reduce.cpp": ["read_reduce_test"],
    "engine/graph/read_copy.cpp": ["read_copy_test"],
    "engine/graph/scratch.cpp": ["scratch_test"],
    "engine/graph/address.cpp": ["address_test"],
    "engine/graph/wire.cpp": ["read_test", "graph_wire_test", "scratch_test", "read_reduce_test"],
    "engine/graph/param.cpp": ["param_test"],
    "engine/kernel/ir.cpp": ["ir_test"],
    "engine/plane/view.cpp": ["view_test", "read_test"],
    "engine/plane/layout.cpp": ["layout_test", "read_test"],
}
PATIENCE_S = 60  # a broken loop may not end: that is noticed, too
MEMORY = 4 << 30  # or may collect for ever


def explained() -> dict[tuple[str, str, str], str]:
    """FILE | CONDITION | true, false or ignored | REASON, a line each. Conditions may hold ||, never a lone |."""
    known = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line and not line.startswith("#"):
            file, condition, value, reason = (part.strip() for part in line.split(" | "))
            known[file, condition, value] = reason
    return known


def write_if_changed(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def copy_tree(tree: Path) -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if not name or not (ROOT / name).is_file():
            continue
        content = (ROOT / name).read_bytes()
        if name in SUBJECTS:
            content = with_switches(name, content.decode()).encode()
        write_if_changed(tree / name, content)
        shutil.copymode(ROOT / name, tree / name)


def build(tree: Path, tests: list[str], jobs: int) -> dict[str, Path]:
    """As the release preset builds, and as deep below the tree: ccache then has all but the subjects."""
    folder = tree / "build" / "release"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DEAGLE_BENCHMARKS=OFF"]
    subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", folder, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, f"-j{jobs}", "--quiet", *tests], check=True)
    return {test: folder / "bin" / test for test in tests}


class Tests:
    """The test programs, and what is known of how they end with a break on."""

    def __init__(self, programs: dict[str, Path], results: Path) -> None:
        self.programs = programs
        self.results = {
            test: results / f"{test}-{hashlib.sha256(program.read_bytes()).hexdigest()[:16]}"
            for test, program in programs.items()
        }
        for folder in self.results.values():
            folder.mkdir(parents=True, exist_ok=True)

    def failure(self, test: str, broken: Break | None = None) -> str:
        """What fails with this break on; nothing when all pass."""
        environment = dict(os.environ)
        kept = self.results[test] / "unbroken"
        if broken:
            environment |= {"EAGLE_BREAK_FILE": broken.file, "EAGLE_BREAK_NUMBER": str(broken.number)}
            kept = self.results[test] / f"{Path(broken.file).stem}-{broken.number}"
        if not kept.exists():
            result = self.run(test, environment)
            whole = kept.with_suffix(".new")
            whole.write_text(result)
            whole.rename(kept)
        return kept.read_text()

    def run(self, test: str, environment: dict[str, str]) -> str:
        limited = ["prlimit", f"--as={MEMORY}", "--core=0", str(self.programs[test].resolve())]
        try:
            ran = subprocess.run(
                [*limited, "--gtest_brief=1", "--gtest_fail_fast"],
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return f"{test} (does not end)"
        if ran.returncode == 0:
            return ""
        failed = re.search(rb"\[  FAILED  \] ([\w./]+)", ran.stdout)
        return f"{test} ({failed.group(1).decode() if failed else f'exit status {ran.returncode}'})"

    def notice(self, broken: Break) -> str:
        return next((found for test in SUBJECTS[broken.file] if (found := self.failure(test, broken))), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=list(SUBJECTS), metavar="FILE")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--jobs", type=int, default=2, help="at once")
    parser.add_argument("--list", action="store_true", help="print the breaks and run none")
    parser.add_argument("--verbose", action="store_true", help="print which test notices which break")
    options = parser.parse_args()
    if unknown := [file for file in options.files if file not in SUBJECTS]:
        parser.error(f"no subject: {', '.join(unknown)}; known are {', '.join(SUBJECTS)}")
    breaks = [found for file in options.files for found, _ in breaks_in(file, (ROOT / file).read_text())]
    if options.list:
        print("\n".join(map(str, breaks)))
        return 0

    copy_tree(options.build / "tree")
    everything = sorted({test for file in options.files for test in SUBJECTS[file]})
    programs = build(options.build / "tree", everything, options.jobs)
    tests = Tests(programs, options.build / "results")
    known = explained()
    counts: dict[str, Counter[str]] = {file: Counter() for file in options.files}
    bad = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        if failures := [found for found in pool.map(tests.failure, everything) if found]:
            print(f"fails without a break: {', '.join(failures)}", file=sys.stderr)
            return 2
        for broken, noticed in zip(breaks, pool.map(tests.notice, breaks), strict=True):
            reason = known.get(broken.key)
            if noticed and reason:
                bad += 1
                print(f"EXPLAINED, BUT NOTICED by {noticed}: {broken}", flush=True)
            elif not noticed and not reason:
                bad += 1
                print(f"NOT NOTICED: {broken}", flush=True)
            elif options.verbose:
                print(f"{noticed or reason}: {broken}", flush=True)
            counts[broken.file]["noticed" if noticed else "explained" if reason else "not noticed"] += 1
    if unused := [key for key in known if key[0] in counts and key not in {one.key for one in breaks}]:
        bad += len(unused)
        print("\n".join(f"EXPLAINED, BUT NO BREAK: {' | '.join(key)}" for key in unused))
    for file, count in counts.items():
        print(f"{file}: {sum(count.values())} breaks: " + ", ".join(f"{count[kind]} {kind}" for kind in KINDS))
    return 1 if bad else 0


KINDS = ("noticed", "explained", "not noticed")

if __name__ == "__main__":
    sys.exit(main())
