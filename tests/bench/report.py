"""What a run says: rows as they are measured, the table of ratios, and the verdict."""

from __future__ import annotations

import datetime
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import machine
from frame import LIMIT, ROOT, TWIN_TOO_SLOW, Bound, Measured

RECORD = ROOT / "docs/measurements/ratios.md"
HEAD = """\
# Ratios

Tables that `tests/bench/run.py --record` appended, the newest last. A ratio is ours over what it is measured against in
the same run, both minima; `tests/bench/README.md` says how, and what each limit is.
"""


def shown(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:.4g} {unit}"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")):
        if value * factor >= 1 or name == "ns":
            return f"{value * factor:.4g} {name}"
    raise AssertionError


def of_row(measured: Measured) -> str:
    lines = [f"  {measured.row.title}"]
    for name, values in measured.values.items():
        least, middle = (shown(value, measured.row.unit) for value in (min(values), statistics.median(values)))
        lines.append(f"    {name:34} {least:>12} ({middle})")
    lines += [f"      {said_of(measured, *each)}" for each in measured.ratios()]
    return "\n".join(lines)


def said_of(measured: Measured, bound: Bound, against: str, found: float | None) -> str:
    if bound.against is None:
        if found is None:
            return f"{bound.form}: not measured"
        value, most = shown(found, measured.row.unit), shown(bound.most, measured.row.unit)
        return f"{bound.form}: {value}, at most {most}: {'yes' if found <= bound.most else 'NO'}"
    if found is None:
        return f"{bound.form} / {against}: not measured"
    return f"{bound.form} / {against}: {found:.3g}, at most {bound.most:.3g}: {'yes' if found <= bound.most else 'NO'}"


@dataclass
class Verdict:
    held: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    twin_too_slow: list[str] = field(default_factory=list)


def twin_is_too_slow(measured: Measured, limits: machine.Limits) -> str | None:
    limit, known = measured.limit(), limits.of(measured)
    if limit is None or known is None or measured.least(limit) <= TWIN_TOO_SLOW * known:
        return None
    return (
        f"{limit} took {shown(measured.least(limit), measured.row.unit)}, more than {TWIN_TOO_SLOW} times the "
        f"{shown(known, measured.row.unit)} that it takes on a machine like this"
    )


def verdict(rows: Iterable[Measured], limits: machine.Limits) -> Verdict:
    """Which bounds hold. Nothing is compared with a twin that is too slow."""
    found = Verdict()
    for measured in rows:
        name = f"line {measured.line}, {measured.row.title}"
        slow = twin_is_too_slow(measured, limits)
        if slow:
            found.twin_too_slow.append(f"{name}: twin too slow, compare nothing: {slow}")
        for bound, against, ratio in measured.ratios():
            line = f"{name}: {said_of(measured, bound, against, ratio)}"
            if ratio is None:
                found.unmeasured.append(line)
            elif not (slow and bound.against == LIMIT):
                (found.held if ratio <= bound.most else found.missed).append(line)
    return found


def summary(found: Verdict, wrong: Sequence[str]) -> str:
    parts = [("wrong answers", wrong), ("twins too slow", found.twin_too_slow), ("missed", found.missed)]
    lines = [f"{title}:\n" + "\n".join(f"  {line}" for line in part) for title, part in parts if part]
    lines.append(
        f"{len(found.held)} bounds hold, {len(found.missed)} are missed, {len(found.unmeasured)} were not measured"
    )
    return "\n".join(lines)


def table(rows: Sequence[Measured], limits: machine.Limits) -> str:
    """One row a bound; rows without bounds show their forms."""
    lines = ["| # | work | ours | min (median) | against | min | ratio | bound | |", "|" + " --- |" * 9]
    for measured in rows:
        unit, slow = measured.row.unit, twin_is_too_slow(measured, limits)
        first = f"| {measured.line} | {measured.row.title} |"
        found = [each for each in measured.ratios() if each[2] is not None]
        if not found:
            for name in measured.values:
                lines.append(f"{first} {name} | {_both(measured, name)} | | | | | |")
        for bound, against, ratio in found:
            assert ratio is not None
            verdict = "held" if ratio <= bound.most else "missed"
            if bound.against is None:
                ends = f" | | | {shown(bound.most, unit)} | {verdict} |"
            else:
                verdict = "twin too slow" if slow and bound.against == LIMIT else verdict
                least = shown(measured.least(against), unit)
                ends = f" {against} | {least} | {ratio:.3g} | {bound.most:.3g} | {verdict} |"
            lines.append(f"{first} {bound.form} | {_both(measured, bound.form)} |{ends}")
    return "\n".join(lines)


def others(rows: Sequence[Measured]) -> str:
    """Forms that no bound names, so that a reader sees all that was measured."""
    lines = ["| # | work | form | min (median) |", "| --- | --- | --- | --- |"]
    for measured in rows:
        named = {
            name for bound, against, found in measured.ratios() if found is not None for name in (bound.form, against)
        }
        if named:
            for name in measured.values:
                if name not in named:
                    lines.append(f"| {measured.line} | {measured.row.title} | {name} | {_both(measured, name)} |")
    return "\n".join(lines)


def _both(measured: Measured, name: str) -> str:
    values, unit = measured.values[name], measured.row.unit
    return f"{shown(min(values), unit)} ({shown(statistics.median(values), unit)})"


def record(
    about: dict[str, Any], rows: Sequence[Measured], found: Verdict, said: Sequence[str], wrong: Sequence[str]
) -> None:
    """Appends what was measured to the page of ratios."""
    text = RECORD.read_text() if RECORD.exists() else HEAD
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    limits = machine.Limits(about)
    parts = [
        f"## {day}, commit {about['commit']}",
        f"`tests/bench/run.py {' '.join(sys.argv[1:])}`. {machine.text(about)}; {about['load_after']:.1f} after.",
        table(rows, limits),
        f"{len(found.held)} bounds hold, {len(found.missed)} are missed, {len(found.unmeasured)} were not measured.",
    ]
    notes = [*said, *found.twin_too_slow, *found.unmeasured, *wrong]
    if notes:
        parts.append("\n".join(f"- {line}" for line in notes))
    parts += ["What else ran in turn:", others(rows)]
    RECORD.write_text(text.rstrip() + "\n\n" + "\n\n".join(parts) + "\n")
