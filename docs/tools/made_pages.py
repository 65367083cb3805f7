"""What scripts that make pages do with them."""

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write_or_check(pages: Mapping[Path, str], says: str, script: str) -> int:
    """Writes the pages, or after ``--check`` names those that are not what ``says`` says. The exit status."""
    if sys.argv[1:] != ["--check"]:
        for path, text in pages.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return 0
    wrong = [path for path, text in pages.items() if not path.is_file() or path.read_text() != text]
    if wrong:
        names = ", ".join(str(path.relative_to(ROOT)) for path in wrong)
        print(f"not what {says}: {names}; run docs/tools/{script}", file=sys.stderr)
    return 1 if wrong else 0
