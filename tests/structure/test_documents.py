"""Documents that must agree with the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT, text, with_suffix

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_errors_page_is_what_the_table_of_reasons_says():
    command = [sys.executable, ROOT / "docs/tools/errors.py", "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run docs/tools/errors.py and commit the page"


@pytest.mark.parametrize(
    "script",
    ["docs/tools/numbers.py", "docs/tools/gradients.py", "docs/tools/performance.py", "engine/kernel/math/tables.py"],
)
def test_what_a_script_makes_is_what_stands_there(script):
    made = subprocess.run([sys.executable, ROOT / script, "--check"], check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_numbers_page_has_every_function():
    page = text(Path("docs/manual/numbers.md"))
    listed = {name for row in re.findall(r"^\| `([\w, ]+)` \|", page, re.MULTILINE) for name in row.split(", ")}
    rules = re.findall(
        r'Rule\{Opcode::\w+, "(\w+)", \d, Typing::(?:reals|question)\}', text(Path("engine/kernel/typing.cpp"))
    )
    assert len(rules) > 40
    other = {"div": "", "floor_quotient": "floor_divide"}  # arithmetic; Python's name
    assert {other.get(name, name) for name in rules} - {""} <= listed


def test_errors_page_lists_every_reason():
    header = text(Path("engine/base/reason.h"))
    names = re.findall(r"^\s*X\(\w+,\s*([A-Z_]+),", header, re.MULTILINE)
    page = text(Path("docs/manual/errors.md"))
    assert len(names) > 30
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_every_package_has_its_reason():
    listed = subprocess.run(
        [
            "bash",
            ROOT / "deploy/install_dependencies.sh",
            "--sanitizers",
            "--operations",
            "--web",
            "--gradients",
            "--deploy",
            "--list",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    page = text(Path("docs/design/dependencies.md"))
    assert len(listed) > 10
    assert [name for name in listed if f"`{name}`" not in page] == []


def test_every_python_requirement_has_its_reason():
    lists = (
        "tests/requirements.txt",
        "tests/gpu/requirements.txt",
        "tests/gradients/requirements.txt",
        "tests/scale/requirements.txt",
        "deploy/package_requirements.txt",
    )
    lines = [line for path in lists for line in text(Path(path)).splitlines()]
    names = [re.match(r"[\w.-]+", line).group() for line in lines if line and not line.startswith("#")]
    page = text(Path("docs/design/dependencies.md"))
    assert names
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", with_suffix(".md"), ids=str)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(text(page)) if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in links if not (ROOT / page.parent / link).exists()] == []
