"""Hooks of mkdocs (mkdocs.yml): what a site needs beside the pages as they are read in the tree.

- Links that lead out of docs/ (to headers, tests, the changes) are text in a site: it has pages alone.
- Design notes and measurements are listed by their titles, in sections of their own; so are pages of the manual that no
  section names yet, so that a page that is added is never lost.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
#: Sections for folders, in this order.
FOLDERS = (("Design notes", "design"), ("Measurements", "measurements"))
#: Where a page of the manual goes that the list does not name.
ELSE = "Running"


def title_of(page: str) -> str:
    """The first heading; of a folder's list of pages, that it is one."""
    if Path(page).name == "README.md":
        return "Overview"
    found = re.search(r"^# (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else Path(page).stem


def _named(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    values = nav.values() if isinstance(nav, dict) else nav
    return {name for value in values for name in _named(value)}


def on_config(config: Any) -> Any:
    """Completes the navigation."""
    nav = config["nav"]
    for title, folder in FOLDERS:
        found = (path.relative_to(DOCS) for path in (DOCS / folder).glob("*.md"))
        pages = sorted(map(str, found), key=lambda page: (not page.endswith("/README.md"), page))
        nav.append({title: [{title_of(page): page} for page in pages]})
    named = _named(nav)
    for path in sorted((DOCS / "manual").rglob("*.md")):
        page = str(path.relative_to(DOCS))
        if page in named:
            continue
        section = next(entry[ELSE] for entry in nav if ELSE in entry)
        section.append({title_of(page): page})
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of the site, as text."""
    folder = posixpath.dirname(page.file.src_uri)

    def made(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        place = posixpath.normpath(posixpath.join(folder, target))
        # What is nowhere stays a link, for mkdocs to complain of.
        outside = (place.startswith("..") or _left_out(place)) and (DOCS / place).exists()
        return text if outside else found[0]

    return LINK.sub(made, markdown)


def _left_out(place: str) -> bool:
    return place == "README.md" or place.split("/")[0] in ("tools", "man", "completion")
