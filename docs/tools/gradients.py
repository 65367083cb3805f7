"""Writes the table of derivatives in docs/manual/gradients.md from engine/kernel/diff/table.h.

    python3 docs/tools/gradients.py            # writes the table
    python3 docs/tools/gradients.py --check    # 1 if the page is not what this would write

docs/tools/numbers.py takes the derivatives of its functions from here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "engine" / "kernel" / "diff" / "table.h"
PAGE = ROOT / "docs" / "manual" / "gradients.md"
BEGIN, END = "<!-- table: python3 docs/tools/gradients.py -->\n", "<!-- end of table -->\n"

# As the text form of kernels says them.
NAMES = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}


class Rule(NamedTuple):
    derivative: str
    ties: str

    def __str__(self) -> str:
        return f"{self.derivative}; {self.ties}" if self.ties else self.derivative


def rules() -> dict[str, Rule]:
    """By the name of the operation, in the order of the table."""
    found = re.findall(r'X\((\w+), "([^"]*)", "([^"]*)"\)', SOURCE.read_text())
    return {NAMES.get(code, code.rstrip("_")): Rule(derivative, ties) for code, derivative, ties in found}


def table() -> str:
    """Neighbours with one rule share a row."""
    rows: list[tuple[list[str], Rule]] = []
    for name, rule in rules().items():
        if rows and rows[-1][1] == rule:
            rows[-1][0].append(name)
        else:
            rows.append(([name], rule))
    lines = ["| operation | derivative by each operand | ties and ends |", "| --- | --- | --- |"]
    for names, rule in rows:
        cells = [", ".join(f"`{name}`" for name in names), rule.derivative, rule.ties]
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    made = before + BEGIN + table() + END + rest.partition(END)[2]
    if arguments == ["--check"] and made != page:
        sys.exit(f"{PAGE} is not what gradients.py makes; run it")
    if not arguments:
        PAGE.write_text(made)


if __name__ == "__main__":
    main(sys.argv[1:])
