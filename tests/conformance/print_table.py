"""Prints the rows of the conformance table, with their outcome on each host.

print_table.py RESULTS.xml     the JUnit file that ctest wrote for the suite
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROW = re.compile(r"^row (\d+) \| (\w+) \| (.*) \| (.*)$", re.MULTILINE)


def rows_of(results: str) -> dict[int, tuple[str, str, dict[str, str]]]:
    """By number: input, expected, and the outcome by host."""
    rows: dict[int, tuple[str, str, dict[str, str]]] = {}
    for case in ElementTree.fromstring(results).iter("testcase"):
        output = case.find("system-out")
        found = ROW.search(output.text or "") if output is not None else None
        if found is None:
            continue
        number, host, given, expected = found.groups()
        outcome = "pass" if case.get("status", "run") == "run" and case.find("failure") is None else "FAIL"
        if case.find("skipped") is not None:
            outcome = "skip"
        rows.setdefault(int(number), (given, expected, {}))[2][host] = outcome
    return rows


def print_rows(rows: dict[int, tuple[str, str, dict[str, str]]]) -> None:
    """One line a row."""
    width = max((len(given) for given, _, _ in rows.values()), default=0)
    for _, (given, expected, outcomes) in sorted(rows.items()):
        told = "  ".join(f"{host} {outcome}" for host, outcome in sorted(outcomes.items(), reverse=True))
        print(f"  {told}  {given:<{width}}  {expected}")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if path.is_file():
        print_rows(rows_of(path.read_text()))
