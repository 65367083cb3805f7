"""Sums up the JUnit files that ctest and pytest wrote for the suites of one run.

    tally.py [--suite] RESULTS_FOLDER SUITE=EXIT_STATUS...

With --suite: one line a suite, then each failed test with its output and each skipped one with its reason.
Without: the closing line alone, `N passed, N failed, N skipped`. Exit status 1 if a test failed or none passed.
A runner that crashed, ran no test, or failed without a failed test counts as one failed test: a suite
cannot go missing.
"""

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

LOG_TAIL_LINES = 80
EMPTY_SECTION = re.compile(r"-+ Captured \w+ -+\n\s*(?=-+ Captured|\Z)")  # of pytest


@dataclass
class Outcome:
    passed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)  # (test, output)
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (test, reason)


def skip_reason(skipped: ElementTree.Element, output: str) -> str | None:
    """Why a test was skipped; None when ctest says 'skipped' of a test that it could not start."""
    message = skipped.get("message") or ""
    if message.startswith("SKIP_"):  # ctest matched GoogleTest's own words; the reason is in the output
        found = re.search(r": Skipped\n(.*?)(?:\n\n|\n\[|\Z)", output, re.DOTALL)
        return found.group(1).strip() if found else "no reason given"
    if message == "collection skipped":  # a whole module by pytest: ('path', line, 'Skipped: reason')
        return module_reason(skipped.text or "")
    return message if skipped.get("type") == "pytest.skip" else None


def module_reason(text: str) -> str:
    """The reason in what pytest writes of a module that skipped itself."""
    try:
        return str(ast.literal_eval(text.strip())[-1]).removeprefix("Skipped: ")
    except (ValueError, SyntaxError, LookupError, TypeError):
        return text.strip() or "no reason given"


def read_case(case: ElementTree.Element, outcome: Outcome) -> None:
    name = case.get("name", "?")
    if case.get("classname") and case.get("classname") != name:
        name = f"{case.get('classname')}.{name}"
    output = "\n".join(part.text or "" for part in case if part.tag in ("system-out", "system-err"))
    output = EMPTY_SECTION.sub("", output).strip()
    broken = [part for part in case if part.tag in ("failure", "error")]
    skipped = case.find("skipped")
    if broken:
        text = "\n".join((part.text or part.get("message") or "") for part in broken)
        outcome.failed.append((name, f"{text}\n{output}\nafter {case.get('time', '?')} s".strip()))
    elif skipped is not None:
        reason = skip_reason(skipped, output)
        if reason is None:
            outcome.failed.append((name, f"could not run: {skipped.get('message')}\n{output}".strip()))
        else:
            outcome.skipped.append((name, reason))
    elif case.get("status") == "disabled":
        outcome.skipped.append((name, "disabled in its source"))
    elif case.get("status", "run") != "run":
        outcome.failed.append((name, f"status {case.get('status')}\n{output}"))
    else:
        outcome.passed += 1


def read_suite(folder: Path, suite: str, exit_status: int) -> Outcome:
    outcome = Outcome()
    try:
        for case in ElementTree.parse(folder / f"{suite}.xml").iter("testcase"):
            read_case(case, outcome)
    except (OSError, ElementTree.ParseError) as error:
        outcome.failed.append((f"{suite} (the runner)", f"left no results: {error}\n{log_tail(folder, suite)}"))
        return outcome
    if exit_status != 0 and not outcome.failed:
        what = f"exited with {exit_status}, though no test of it failed"
        outcome.failed.append((f"{suite} (the runner)", f"{what}\n{log_tail(folder, suite)}"))
    elif not outcome.passed and not outcome.failed:
        outcome.failed.append((f"{suite} (the runner)", f"no test passed\n{log_tail(folder, suite)}"))
    return outcome


def log_tail(folder: Path, suite: str) -> str:
    try:
        lines = (folder / f"{suite}.log").read_text(errors="replace").splitlines()
    except OSError as error:
        return f"no log: {error}"
    return "\n".join(lines[-LOG_TAIL_LINES:])


def counts(outcomes: list[Outcome]) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.failed) for outcome in outcomes)
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def show(suite: str, outcome: Outcome) -> None:
    for name, output in outcome.failed:
        print(f"\nFAILED  {suite}: {name}")
        print("\n".join(f"    {line}" for line in output.splitlines()))
    for name, reason in outcome.skipped:
        print(f"skipped {suite}: {name}: {reason}")
    print(f"{suite}: {counts([outcome]).replace(',', ' ·')}")


def main(arguments: list[str]) -> int:
    one_suite = arguments[0] == "--suite"
    folder, *statuses = arguments[1:] if one_suite else arguments
    outcomes = {}
    for entry in statuses:
        suite, status = entry.split("=")
        outcomes[suite] = read_suite(Path(folder), suite, int(status))
    if one_suite:
        for suite, outcome in outcomes.items():
            show(suite, outcome)
        return 0
    print()
    for suite, outcome in outcomes.items():
        for name, _ in outcome.failed:
            print(f"FAILED  {suite}: {name}")
    total = list(outcomes.values())
    print(counts(total))
    return 0 if any(o.passed for o in total) and not any(o.failed for o in total) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
