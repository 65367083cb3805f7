"""Writes docs/manual/errors.md from the table of reasons in engine/base/reason.h.

Usage:
    python3 docs/tools/errors.py           write the page
    python3 docs/tools/errors.py --check   exit status 1 if the page is not what would be written
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "engine/base/reason.h"
PAGE = ROOT / "docs/manual/errors.md"

INTRODUCTION = """\
# Errors

<!-- Made by docs/tools/errors.py from engine/base/reason.h: change the table there and run the script. -->

Every refusal has a **reason**, a name that programs may rely on, and a message for a person. The message names the
thing, says what was expected and what was found, and how to mend it; its wording may change, the reason does not.

- **Python** raises the class in the table. Each is an `eagle.EagleError`, and also the builtin exception beside it, so
  `except ValueError` works as one would expect. `error.reason` is the reason's name.
- **C++** returns an `eagle::Status`: `status.reason()`, `status.code()`, `status.message()`.
- **On the wire** it is a gRPC status with the code in the table, and the reason in the trailer `eagle-error-reason`;
  also in a `google.rpc.ErrorInfo` among the status's details, unless the message leaves no room for it.

The code says what a program can do about it: `UNAVAILABLE`: try again later. `ABORTED`: start over.
`FAILED_PRECONDITION`: mend the state first. `INVALID_ARGUMENT`, `NOT_FOUND`: mend the input.
`RESOURCE_EXHAUSTED`: ask for less, or raise the limit that the message names. `INTERNAL`: a fault to report.
"""


TABLE_HEAD = """\
| reason | meaning | Python | code |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Reason:
    group: str
    name: str
    code: str
    python_class: str
    python_builtin: str
    meaning: str


STRING = r'"((?:[^"\\]|\\.)*)"'
# A comment that heads a group, or X(name, NAME, code, class, builtin, "meaning").
ITEM = re.compile(
    r"/\*\s*(?P<group>.*?)\s*\*/"
    r"|X\(\s*\w+\s*,\s*(?P<name>\w+)\s*,\s*(?P<code>\w+)\s*,\s*(?P<python>\w+)\s*,\s*(?P<builtin>\w+)\s*,"
    r'\s*(?P<meaning>(?:"(?:[^"\\]|\\.)*"\s*)+)\)'
)


def reasons(header: str) -> list[Reason]:
    """The rows of EAGLE_REASONS, in order."""
    lines = header[header.index("#define EAGLE_REASONS") :].split("\n")
    last = next(i for i, line in enumerate(lines) if not line.rstrip().endswith("\\"))
    table = "\n".join(line.rstrip().rstrip("\\") for line in lines[1 : last + 1])
    found, group = [], ""
    for match in ITEM.finditer(table):
        if match["group"]:
            group = match["group"]
            continue
        meaning = "".join(re.findall(STRING, match["meaning"]))
        found.append(Reason(group, match["name"], match["code"].upper(), match["python"], match["builtin"], meaning))
    if len(found) != len(re.findall(r"\bX\(", table)):
        raise ValueError(f"{HEADER.name}: a row of EAGLE_REASONS has another form than ITEM expects")
    return found


def page(rows: list[Reason]) -> str:
    parts = [INTRODUCTION]
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            parts.append(f"\n## {group[:1].upper()}{group[1:]}\n\n{TABLE_HEAD}")
        python = f"`{row.python_class}`, `{row.python_builtin}`"
        parts.append(f"| `{row.name}` | {row.meaning} | {python} | `{row.code}` |\n")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    text = page(reasons(HEADER.read_text()))
    if arguments == ["--check"]:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
