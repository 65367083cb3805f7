"""Puts measured tables into docs/manual/performance.md, from docs/measurements.

Usage:
    python3 docs/tools/performance.py           write them
    python3 docs/tools/performance.py --check   exit status 1 if one is not what was measured

Between `<!-- from FILE: HEADING -->` and `<!-- end -->` stands the first table under that heading; `last` is the file's
last heading.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/manual/performance.md"
PLACE = re.compile(r"(<!-- from (\S+): (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str, heading: str) -> str:
    """The table, and where it is from."""
    text = (ROOT / "docs/measurements" / name).read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    found = sections[-1:] if heading == "last" else [one for one in sections if one.splitlines()[0] == heading]
    if not found:
        raise SystemExit(f"{name} has no heading '{heading}'")
    rows = re.search(r"^\|.*?(?=\n\n|\Z)", found[0], re.MULTILINE | re.DOTALL)
    if rows is None:
        raise SystemExit(f"{name}: no table under '{heading}'")
    source = found[0].splitlines()[0]
    return f"\n{rows[0].strip()}\n\nFrom [{name}](../measurements/{name}), {source}.\n"


def main() -> int:
    page = PAGE.read_text()
    made = PLACE.sub(lambda place: place[1] + table(place[2], place[3]) + place[4], page)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(made)
    elif made != page:
        print("performance.md is not what was measured: run docs/tools/performance.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
