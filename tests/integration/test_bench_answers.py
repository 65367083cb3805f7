"""The benchmarks compute what they say: every line of the table once, with tiny sizes. No time is looked at."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from harness import BUILD, ROOT

BENCH = ROOT / "tests" / "bench"
PATIENCE_S = 170  # less than a test may take; reaching it is a failure


def bench(*options: str, program: str = "run.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCH / program, *options]
    environment = {**os.environ, "EAGLE_BUILD_DIR": str(BUILD)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture(scope="module", params=range(1, 21, 5), ids=lambda first: f"{first}-{first + 4}")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """What five lines of the table say, by number."""
    lines = range(request.param, request.param + 5)
    file = tmp_path_factory.mktemp("bench") / "answers.json"
    done = bench("--smoke", "--only", ",".join(map(str, lines)), "--json", str(file))
    assert file.exists(), f"{done.stdout}\n{done.stderr}"
    found = json.loads(file.read_text())
    assert done.returncode == (1 if found["wrong"] else 0)
    return {
        line: {
            "wrong": [text for text in found["wrong"] if text.startswith(f"line {line}:")],
            "rows": [row for row in found["rows"] if row["line"] == line],
            "said": [text for text in found["said"] if text.startswith(f"line {line} ")],
        }
        for line in lines
    }


def test_every_line_of_the_table_gives_its_answers(answers):
    assert len(answers) == 5
    for line, found in answers.items():
        assert found["wrong"] == []
        assert found["rows"], f"line {line} has no rows"
        assert any(row["bounds"] for row in found["rows"]), f"nothing is asked of line {line}"
        for row in found["rows"]:
            assert all(form["values"] for form in row["forms"]), row["row"]


def test_every_bound_names_forms_that_are_measured(answers):
    """Or a package that only --peers measures."""
    for row in (row for found in answers.values() for row in found["rows"]):
        forms = {form["form"] for form in row["forms"]}
        for bound in row["bounds"]:
            assert bound["form"] in forms
            assert bound["against"] in forms | {"", "raptor-eagle"}


WRONG_CASE = """
import sys
sys.path.insert(0, {bench!r})
import numpy as np
import run
from frame import LIMIT, Bound, Form, Row

class Case:
    LINE, TITLE = 99, "a form that is off by one bit"
    @staticmethod
    def rows(bench):
        right, wrong = np.ones(3), np.array([1.0, 1.0, np.nextafter(1.0, 2.0)])
        yield Row("ones", [Form("twin", lambda: None, LIMIT, answer=lambda: [right]),
                           Form("ours", lambda: None, answer=lambda: [wrong])], [Bound("ours", 1.0, LIMIT)])

run.cases = lambda: {{99: Case}}
sys.exit(run.main())
"""


def test_a_form_that_is_off_by_one_bit_is_refused(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_CASE.format(bench=str(BENCH)))
    environment = {**os.environ, "EAGLE_BUILD_DIR": str(BUILD)}
    done = subprocess.run(
        [sys.executable, script, "--smoke"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ours: array 0, element 0: found" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--only", "21"), "expected lines of the table"),
        (("--smoke", "--check"), "--smoke measures nothing"),
        (("--repeats", "0"), "start at 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, said):
    done = bench(*options)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr


def test_scaling_says_what_a_launch_costs_outside_of_the_engine():
    done = bench("--parts", "price", "--threads", "1", "--repeats", "1", program="scaling.py")
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| eagle")]
    assert rows == ["eagle in process", "eagle through eagled"]


class Known:
    """What a twin takes on a machine like this."""

    def __init__(self, least: float) -> None:
        self._least = least

    def of(self, _: Any) -> float:
        return self._least


def test_every_row_of_ratios_has_the_cells_of_its_head(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import report
    from frame import LIMIT, Bound, Form, Measured, Row

    forms = [Form("twin", lambda: None, LIMIT), Form("ours", lambda: None)]
    of_all_kinds = [Row("bounds", forms, [Bound("ours", 1.1, LIMIT), Bound("ours", 1e-3)]), Row("none", forms)]
    values = {"twin": [1e-6], "ours": [2e-6]}
    rows = [Measured(6, row, values, {"twin": LIMIT, "ours": "ours"}) for row in of_all_kinds]
    lines = report.table(rows, Known(1e-6)).splitlines()
    assert [line.count("|") for line in lines] == [10] * (2 + 2 + 2)
    head, of_seconds = ([cell.strip() for cell in line.split("|")] for line in (lines[0], lines[3]))
    assert dict(zip(head, of_seconds, strict=True))["bound"] == "1 ms"


def test_ratios_are_judged_as_the_bounds_say(monkeypatch):
    """A limit that is too slow is compared with nothing; a bound that is missed fails --check."""
    monkeypatch.syspath_prepend(str(BENCH))
    import report
    from frame import LIMIT, Bound, Form, Measured, Row

    def verdict(ours: float, twin: float, known: float) -> report.Verdict:
        forms = [Form("twin", lambda: None, LIMIT), Form("ours", lambda: None)]
        row = Row("work", forms, [Bound("ours", 1.1, LIMIT), Bound("ours", 1e-3), Bound("ours", 1.0, "raptor-eagle")])
        values = {"twin": [9.0, twin], "ours": [ours, 9.0]}
        return report.verdict([Measured(6, row, values, {"twin": LIMIT, "ours": "ours"})], Known(known))

    within = verdict(1.1e-6, 1e-6, 1e-6)
    assert (len(within.held), len(within.missed), len(within.unmeasured)) == (2, 0, 1)
    over = verdict(1.2e-6, 1e-6, 1e-6)
    assert len(over.missed) == 1
    assert "ours / twin: 1.2, at most 1.1: NO" in over.missed[0]
    slow = verdict(1.2e-6, 1e-6, 0.7e-6)  # the twin takes 1.43 times what it is known to take
    assert slow.missed == []
    assert len(slow.held) == 1  # the bound in seconds
    assert "twin too slow, compare nothing" in slow.twin_too_slow[0]
