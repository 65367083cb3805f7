"""The code blocks of Markdown pages."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<fence>```+)(?P<words>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)

#: Languages that are what programs print, or pictures of things that are no programs.
OUTPUTS = ("text", "dot", "mermaid", "explanation")
PROGRAMS = ("python", "sh", "cpp", "toml", "yaml")
#: Other names for the same.
SAME = {"bash": "sh", "c++": "cpp"}


@dataclass(frozen=True)
class Block:
    """One of a page; ``line`` is that of its first line of code."""

    page: str
    line: int
    language: str
    code: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, which is named from the root."""
    text = (ROOT / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        language = match["words"].strip()
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(page, line, SAME.get(language, language), match["code"]))
    return found


def pages() -> list[str]:
    """The manual, the design notes, and the pages at the root. Measurements are records: they say what was run once."""
    folders = (ROOT / "docs/manual", ROOT / "docs/design")
    listed = [path for folder in folders for path in folder.rglob("*.md")]
    listed += [ROOT / name for name in ("docs/README.md", "docs/index.md", "README.md", "CONTRIBUTING.md")]
    return sorted(str(path.relative_to(ROOT)) for path in listed)
