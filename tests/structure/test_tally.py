"""The sum at the end of a run counts every test, and no suite can go missing."""

import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT

PASSED = '<testcase name="A.Ok" classname="A.Ok" status="run"><system-out>fine</system-out></testcase>'
FAILED = '<testcase name="A.No" status="fail"><failure message=""/><system-out>1 != 2</system-out></testcase>'
SKIPPED = (
    '<testcase name="A.Gpu" classname="A.Gpu" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
    "<system-out>a.cpp:5: Skipped\nneeds a GPU\n\n</system-out></testcase>"
)
NOT_BUILT = '<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>'
PYTEST_SKIPPED = '<testcase name="t" classname="m"><skipped type="pytest.skip" message="no GPU here"/></testcase>'
MODULE_SKIPPED = (
    '<testcase classname="" name="tests.test_gpu"><skipped message="collection skipped">'
    "('/tests/test_gpu.py', 9, \"Skipped: there's no GPU (of any kind)\")</skipped></testcase>"
)
PYTEST_ERROR = '<testcase name="t" classname="m"><error message="setup failed">traceback</error></testcase>'


def tally(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, str(ROOT / "tests/tally.py"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return result.returncode, result.stdout.splitlines()


def results(folder: Path, **suites: str) -> None:
    for name, cases in suites.items():
        (folder / f"{name}.xml").write_text(f"<testsuite>{cases}</testsuite>")
        (folder / f"{name}.log").write_text("the log\n")


@pytest.mark.parametrize(
    ("cases", "status", "line", "code"),
    [
        (PASSED, 0, "1 passed, 0 failed, 0 skipped", 0),
        (PASSED + SKIPPED + PYTEST_SKIPPED, 0, "1 passed, 0 failed, 2 skipped", 0),
        (PASSED + MODULE_SKIPPED, 0, "1 passed, 0 failed, 1 skipped", 0),
        (PASSED + FAILED, 8, "1 passed, 1 failed, 0 skipped", 1),
        (PASSED + NOT_BUILT, 8, "1 passed, 1 failed, 0 skipped", 1),
        (PASSED + PYTEST_ERROR, 1, "1 passed, 1 failed, 0 skipped", 1),
        (PASSED, 3, "1 passed, 1 failed, 0 skipped", 1),  # the runner failed after its tests
        ("", 0, "0 passed, 1 failed, 0 skipped", 1),  # it ran nothing
        (SKIPPED, 0, "0 passed, 1 failed, 1 skipped", 1),  # it ran nothing either
    ],
)
def test_closing_line(tmp_path, cases, status, line, code):
    results(tmp_path, unit=cases)
    names = [f"FAILED  unit: {name}" for name in failed(cases, status)]
    assert tally(tmp_path, ".", f"unit={status}") == (code, ["", *names, line])


def failed(cases: str, status: int) -> list[str]:
    names = {FAILED: "A.No", NOT_BUILT: "gone", PYTEST_ERROR: "m.t"}
    found = [name for case, name in names.items() if case in cases]
    return found or (["unit (the runner)"] if status or PASSED not in cases else [])


def test_suite_without_results_is_a_failure(tmp_path):
    results(tmp_path, unit=PASSED)
    (tmp_path / "python.log").write_text("segmentation fault\n")
    code, lines = tally(tmp_path, ".", "unit=0", "python=139")
    assert (code, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")
    assert any("segmentation fault" in line for line in tally(tmp_path, "--suite", ".", "python=139")[1])


def test_output_of_failures_and_reasons_of_skips_are_shown(tmp_path):
    results(tmp_path, unit=PASSED + FAILED + SKIPPED + PYTEST_SKIPPED + MODULE_SKIPPED)
    text = "\n".join(tally(tmp_path, "--suite", ".", "unit=8")[1])
    assert "1 != 2" in text
    assert "A.Gpu: needs a GPU" in text
    assert "no GPU here" in text
    assert "skipped unit: tests.test_gpu: there's no GPU (of any kind)" in text
