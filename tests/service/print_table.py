"""Prints what the service survived, and what was measured meanwhile.

print_table.py RESULTS.xml     the JUnit file that pytest wrote for the suite
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def outcome_of(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "FAIL"
    return "skip" if case.find("skipped") is not None else "pass"


def rows_of(results: str) -> dict[str, tuple[list[str], list[str]]]:
    """By what is survived: the outcomes of its tests, and the figures that they left."""
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for case in ElementTree.fromstring(results).iter("testcase"):
        found = [(entry.get("name"), entry.get("value") or "") for entry in case.iter("property")]
        what = next((value for name, value in found if name == "survives"), case.get("name") or "?")
        outcomes, figures = rows.setdefault(what, ([], []))
        outcomes.append(outcome_of(case))
        figures.extend(value for name, value in found if name == "measured")
    return rows


# What must survive, and what must be refused or contained: each has a row, told by words that are in it
# (tests/structure/test_survival_table.py sees to it).
LINES = {
    "kill -9 of a client at every step of what it does": "kill -9 of a client at every step",
    "kill -9 of the worker under load": "kill -9 of the worker under load",
    "a client that stops reading": "stops reading",
    "1,000 sessions": "1,000 sessions",
    "10,000 cycles with flat memory and descriptors": "10,000 times made",
    "a shrinking, growing or foreign descriptor": "shrinks, grows|descriptors that a client sends",
    "disk full for logs": "disk full",
    "RLIMIT_NOFILE": "RLIMIT_NOFILE",
    "memory cgroup": "memory cgroup",
    "pids.max": "pids.max",
    "clock jumps": "wall clock jumps",
    "two sessions interleaving on one device": "two sessions interleaving",
    "SIGTERM with an idle stream open": "SIGTERM",
    "a host callback that raises, hangs or exits": "host callback",
    "a client forked after connect": "forked",
    "protocol versions one apart": "protocol versions",
    "forged secrets and tokens": "forged",
    "foreign plane ids": "ids of another session",
    "unknown enum values": "later version",
    "10^6-node graphs": "10\\^6 nodes",
    "10^5-deep nesting": "10\\^5-deep",
    "names with newlines and quotes": "names with line breaks",
    "a ring scribbled on while launches run": "scribbles",
    "a client that holds every view: 10^5 launches": "10\\^5 launches",
}
# Shown where the thing itself can be looked at; run by the suite that is named.
ELSEWHERE = {
    "overflowing views, negative strides that cancel": "engine/plane/view_test.cpp, server/rpc/transfers_test.cpp",
    "frames cut short, half-open connections": "integration: test_bad_input.py, test_tcp.py",
    "a client killed while its forked child lives on": "unit: server/sockets/connection_test.cpp",
    "kill -9 of the worker between any two writes of the journal": "conformance: survival_test.cpp",
}


def print_rows(rows: dict[str, tuple[list[str], list[str]]]) -> None:
    """By what must survive: the worst outcome of each row, how many tests it has, and its figures."""
    left = dict(rows)
    for line, words in LINES.items():
        found = [what for what in rows if re.search(words, what)]
        print(f"{line}{'' if found else ': NO TEST HAS RUN'}")
        for what in found:
            print_row(what, left.pop(what, None))
    print("besides")
    for what, row in left.items():
        print_row(what, row)
    for line, where in ELSEWHERE.items():
        print(f"{line}: {where}")


def print_row(what: str, row: tuple[list[str], list[str]] | None) -> None:
    if row is None:
        print(f"        {what}: above")
        return
    outcomes, figures = row
    worst = next((kind for kind in ("FAIL", "skip") if kind in outcomes), "pass")
    count = f" ({len(outcomes)} tests)" if len(outcomes) > 1 else ""
    print(f"  {worst}  {what}{count}")
    for figure in figures:
        print(f"        {figure}")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if path.is_file():
        print_rows(rows_of(path.read_text()))
