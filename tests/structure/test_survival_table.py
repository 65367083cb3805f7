"""Everything that the service must survive has a test of the service suite, and so a row of its table."""

from __future__ import annotations

import importlib.util
import re

import pytest
from tree import ROOT

SERVICE = ROOT / "tests" / "service"


def table():
    spec = importlib.util.spec_from_file_location("service_print_table", SERVICE / "print_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows() -> list[str]:
    """What the tests say that they show."""
    text = "".join(path.read_text() for path in sorted(SERVICE.glob("test_*.py")))
    return [match.replace('"\n    "', "") for match in re.findall(r'\.survives\(\s*"((?:[^"\\]|\\.)*)"', text)]


@pytest.mark.parametrize("line", table().LINES)
def test_what_must_survive_has_a_row(line: str) -> None:
    words = table().LINES[line]
    assert [row for row in rows() if re.search(words, row)], f"no test of {SERVICE} says that it shows: {line}"


@pytest.mark.parametrize("line", table().ELSEWHERE)
def test_what_is_shown_elsewhere_is_there(line: str) -> None:
    names = re.findall(r"[\w/]+\.(?:cpp|py)", table().ELSEWHERE[line])
    assert names
    for name in names:
        assert list(ROOT.glob(name)) or list(ROOT.glob(f"tests/*/{name}")), name
