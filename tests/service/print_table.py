"""Prints what the service survived, and what was measured meanwhile.

print_table.py RESULTS.xml     the JUnit file that pytest wrote for the suite
"""

from __future__ import annotations

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


def print_rows(rows: dict[str, tuple[list[str], list[str]]]) -> None:
    """The worst outcome of each row, how many tests it has, and its figures."""
    for what, (outcomes, figures) in rows.items():
        worst = next((kind for kind in ("FAIL", "skip") if kind in outcomes), "pass")
        count = f" ({len(outcomes)} tests)" if len(outcomes) > 1 else ""
        print(f"  {worst}  {what}{count}")
        for figure in figures:
            print(f"        {figure}")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if path.is_file():
        print_rows(rows_of(path.read_text()))
