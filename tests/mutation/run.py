#!/usr/bin/env python3
"""Breaks every branch of the code that decides what overlaps, what waits and what is refused, one at a time, and
looks whether a test notices.

    tests/mutation/run.py [FILE ...] [--build FOLDER] [--list]

Each `if` becomes always true and always false. A break that no test notices is printed with its line; those that
change nothing a user could see (a shortcut to the same answer) are in `equivalent.txt` with the reason. Works on a
copy of the tree under build/mutation. Exit status 1 when a break is neither noticed nor explained.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).resolve().with_name("equivalent.txt")

# What is broken, and the tests that are to notice, quickest first.
SUBJECTS = {
    "engine/plane/overlap.cpp": ["overlap_test", "edges_test", "races_test"],
    "engine/graph/meetings.cpp": ["edges_test", "races_test"],
    "engine/graph/edges.cpp": ["edges_test", "races_test"],
    "engine/graph/races.cpp": ["races_test"],
    "engine/graph/leaf_maker.cpp": ["edges_test", "races_test"],
    "engine/graph/read_counter.cpp": ["read_counter_test"],
    "engine/graph/read.cpp": ["read_test", "read_counter_test", "hostile_graph_test", "edges_test"],
    "engine/graph/read_launch.cpp": ["read_test", "hostile_graph_test", "edges_test"],
}
PATIENCE_S = 60  # a broken loop may not end: that is noticed, too


@dataclass(frozen=True)
class Break:
    file: str
    line: int
    condition: str
    value: str  # "true" or "false"
    begin: int  # of the condition in the file's text
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: if ({self.condition}) is always {self.value}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.condition, self.value

    def applied_to(self, text: str) -> str:
        combine = "true ||" if self.value == "true" else "false &&"
        return f"{text[: self.begin]}{combine} ({text[self.begin : self.end]}){text[self.end :]}"


def breaks_in(file: str, text: str) -> list[Break]:
    found = []
    for start in re.finditer(r"\bif (?:constexpr )?\(", text):
        begin = start.end()
        end = closing(text, begin)
        semicolon = text.rfind(";", begin, end)
        begin = begin if semicolon < 0 else semicolon + 1  # if (init; condition)
        condition = " ".join(text[begin:end].split())
        if re.match(r"(const )?[\w:<>*& ]+ = ", condition):
            continue  # a declaration has no other value
        line = text.count("\n", 0, start.start()) + 1
        found += [Break(file, line, condition, value, begin, end) for value in ("true", "false")]
    return found


def closing(text: str, begin: int) -> int:
    """Where the parenthesis closes that opened before `begin`. Braces of strings do not occur in conditions."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("an 'if' that does not close")


def explained() -> dict[tuple[str, str, str], str]:
    """FILE | CONDITION | true or false | REASON, a line each."""
    known = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line and not line.startswith("#"):
            file, condition, value, reason = (part.strip() for part in line.split(" | "))
            known[file, condition, value] = reason
    return known


def copy_tree(tree: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in tracked.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
                shutil.copy(ROOT / name, target)


def build(folder: Path, tests: list[str]) -> bool:
    return subprocess.run(["ninja", "-C", folder, *tests], capture_output=True, check=False).returncode == 0


def noticed_by(folder: Path, tests: list[str]) -> str | None:
    """The first test program that fails; None when all pass."""
    for test in tests:
        (program,) = [path for path in folder.rglob(test) if path.is_file()]
        try:
            ran = subprocess.run([program, "--gtest_brief=1"], capture_output=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            return f"{test} (does not end)"
        if ran.returncode != 0:
            return test
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=list(SUBJECTS), metavar="FILE")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--list", action="store_true", help="print the breaks and apply none")
    options = parser.parse_args()
    if unknown := [file for file in options.files if file not in SUBJECTS]:
        parser.error(f"no subject: {', '.join(unknown)}; known are {', '.join(SUBJECTS)}")
    breaks = [found for file in options.files for found in breaks_in(file, (ROOT / file).read_text())]
    if options.list:
        print("\n".join(map(str, breaks)))
        return 0

    tree, folder = options.build / "tree", options.build / "cmake"
    copy_tree(tree)
    configure = ["cmake", "-G", "Ninja", "-S", tree, "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", "-DEAGLE_BENCHMARKS=OFF"]
    subprocess.run(
        [*configure, "-DCMAKE_CXX_FLAGS=-O1 -g0 -w -D_GLIBCXX_ASSERTIONS"], check=True, stdout=subprocess.DEVNULL
    )
    everything = sorted({test for file in options.files for test in SUBJECTS[file]})
    if not build(folder, everything) or noticed_by(folder, everything):
        print("the tree does not build or pass without a break", file=sys.stderr)
        return 2

    known, survivors, caught = explained(), [], 0
    for found in breaks:
        path = tree / found.file
        whole = path.read_text()
        path.write_text(found.applied_to(whole))
        tests = SUBJECTS[found.file]
        noticed = "the compiler" if not build(folder, tests) else noticed_by(folder, tests)
        path.write_text(whole)
        if noticed:
            caught += 1
        elif found.key in known:
            print(f"explained: {found}: {known[found.key]}", flush=True)
        else:
            survivors.append(found)
            print(f"NOT NOTICED: {found}", flush=True)
    print(
        f"{len(breaks)} breaks: {caught} noticed, {len(breaks) - caught - len(survivors)} explained, "
        f"{len(survivors)} not noticed"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
