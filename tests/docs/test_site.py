"""The manual as a site, and pages that scripts make."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import ROOT

HEADER = (ROOT / "engine/base/reason.h").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    folders = ("manual", "design", "measurements")
    pages = [path.relative_to(ROOT / "docs") for name in folders for path in (ROOT / "docs" / name).rglob("*.md")]
    assert len(pages) > 40
    places = {page: page.with_name("index.html" if page.name == "README.md" else f"{page.stem}.html") for page in pages}
    assert [page for page, place in places.items() if not (site / place).is_file()] == []


def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    outside = re.compile(r"""(?:src|href)=["'](https?:)?//(?!www\.mkdocs\.org)[^"']+["'][^>]*""")
    found = {
        (path.name, match[0])
        for path in site.rglob("*.html")
        for match in re.finditer(r"<(?:script|link|img)\b[^>]*>", path.read_text())
        if outside.search(match[0])
    }
    assert found == set()


def test_pictures_are_there(site: Path) -> None:
    for path in site.rglob("*.html"):
        for source in re.findall(r'<img [^>]*src="([^"]+)"', path.read_text()):
            assert (path.parent / source).is_file(), f"{path.name}: {source}"


def test_the_protocol_pages_are_what_the_comments_say() -> None:
    command = [sys.executable, ROOT / "docs/tools/protocol.py", "--check"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def test_every_call_has_its_errors_and_limits() -> None:
    calls = re.findall(r"^  rpc (\w+)\(", (ROOT / "proto/eagle/v1/service.proto").read_text(), re.MULTILINE)
    pages = "".join(path.read_text() for path in (ROOT / "docs/manual/protocol").glob("*.md"))
    assert len(calls) > 35
    assert len(re.findall(r"^\*\*Errors\*\*", pages, re.MULTILINE)) == len(calls)
    assert len(re.findall(r"^\*\*Limits\*\*", pages, re.MULTILINE)) == len(calls)


def test_errors_of_calls_are_reasons_that_there_are() -> None:
    reasons = set(re.findall(r"X\(\w+,\s*([A-Z_]+),", HEADER))
    said: set[str] = set()
    for path in (ROOT / "docs/manual/protocol").glob("*.md"):
        for line in re.findall(r"^\*\*Errors\*\* (.*)$", path.read_text(), re.MULTILINE):
            said |= set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)+\b|\bBUSY\b|\bQUOTA\b|\bCANCELLED\b|\bDEADLINE\b", line))
    assert len(said) > 20
    assert said - reasons == set()


def test_limits_of_calls_are_keys_that_there_are() -> None:
    settings = (ROOT / "docs/manual/configuration.md").read_text()
    for path in (ROOT / "docs/manual/protocol").glob("*.md"):
        for line in re.findall(r"^\*\*Limits\*\* (.*)$", path.read_text(), re.MULTILINE):
            for key in re.findall(r"\btenant_(\w+)", line):
                assert f"{key} = " in settings, key


def test_design_notes_have_what_a_maintainer_asks_for() -> None:
    """What is required, why not another way, and what is known to be missing."""
    lacking = []
    for path in sorted((ROOT / "docs/design").glob("*.md")):
        if path.name in ("README.md", "dependencies.md"):
            continue
        text = path.read_text()
        for words in (r"^## (Requirements|What is asked for)$", r"(?i)\bwhy not\b", r"^## Known gaps$"):
            if not re.search(words, text, re.MULTILINE):
                lacking.append(f"{path.name}: {words}")
    assert lacking == []


def test_every_design_note_is_listed() -> None:
    listed = (ROOT / "docs/design/README.md").read_text()
    notes = {path.name for path in (ROOT / "docs/design").glob("*.md")} - {"README.md"}
    assert sorted(name for name in notes if f"({name})" not in listed) == []
