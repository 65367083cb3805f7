"""What all cases share: forms that do one row's work in turn, answers that are compared first, bounds on ratios.

A case (``cases/lineNN_*.py``) is one line of the table: ``LINE``, ``TITLE`` and ``rows(bench)``, which yields
:class:`Row` objects. A row is one piece of work in several :class:`Form` objects: ours, the hand-written limit, other
packages. ``measure`` compares all answers with the first form's, then runs the forms in turn, ``repeats`` times, each
round beginning with another form: whatever the machine does beside us meets all of them alike.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from harness import BUILD, Daemon  # noqa: E402

OURS, LIMIT, PEER, OTHER = "ours", "limit", "peer", "other"
IN_PROCESS, DAEMON, TWIN = "eagle in process", "eagle through eagled", "C++ twin"
# A twin that is so much slower than it has been on a like machine says that the machine is busy, not how fast we are.
TWIN_TOO_SLOW = 1.3
# Longer than threads of an OpenMP team spin after their work, so that one form's team is asleep when the next begins.
SETTLE_S = 0.005
ANSWER_ITEMS = 10_000
WHICH_GPUS = ("EAGLE_CUDA_DRIVER", "EAGLE_FAKE_CUDA")


class Clock:
    """What all forms of this process are timed by: the time that passes, or processor time of this process, which
    others on the machine add nothing to."""

    now = staticmethod(time.perf_counter)

    @classmethod
    def take_processor_time(cls) -> None:
        cls.now = staticmethod(time.process_time)

    @classmethod
    def passes(cls) -> bool:
        return cls.now is time.perf_counter


class WrongAnswer(Exception):
    """A form does not compute what the row is about: nothing that it takes is worth a line."""


class Unavailable(Exception):
    """This form cannot run here; the text says why."""


@dataclass
class Form:
    """One way to do a row's work.

    ``run`` does it once and returns None, and is timed from outside; or returns what it measured itself, a unit's
    worth. ``units`` is how many units of work one run does. ``reset`` comes before each run and is not timed.
    ``answer`` gives arrays for comparison, None where the form has none. ``tolerance`` is None for equal bits, else
    relative to the largest number of the expected array.
    """

    name: str
    run: Callable[[], float | None]
    kind: str = OURS
    units: int = 1
    reset: Callable[[], object] = lambda: None
    answer: Callable[[], Any] | None = None
    tolerance: float | None = None
    values: list[float] | None = None  # measured elsewhere already, answers included

    def measure(self) -> float:
        """One value: seconds a unit, or whatever ``run`` measures."""
        self.reset()
        begin = Clock.now()
        found = self.run()
        took = Clock.now() - begin
        return took / self.units if found is None else found


class Bound(NamedTuple):
    """``form`` takes at most ``most`` times what ``against`` takes: a form's name, LIMIT (the fastest twin), or a value
    in the row's unit, which is then ``most`` itself. ``twin``: ``against`` is a limit, whose slowness says something.
    """

    form: str
    most: float
    against: str | None = None


@dataclass
class Row:
    title: str
    forms: list[Form]
    bounds: list[Bound] = field(default_factory=list)
    unit: str = "s"
    repeats: int | None = None  # where fewer than the run's tell enough
    note: str = ""


@dataclass
class Measured:
    """A row's values by form, in the order of the forms."""

    line: int
    row: Row
    values: dict[str, list[float]]
    kinds: dict[str, str]

    def least(self, name: str) -> float:
        return min(self.values[name])

    def limit(self) -> str | None:
        """The fastest twin."""
        twins = [name for name, kind in self.kinds.items() if kind == LIMIT]
        return min(twins, key=self.least, default=None)

    def ratios(self) -> Iterator[tuple[Bound, str, float | None]]:
        """Each bound, what it is against, and the ratio, or None where one of the two was not measured."""
        for bound in self.row.bounds:
            against = self.limit() if bound.against == LIMIT else bound.against
            if bound.form not in self.values or (bound.against is not None and against not in self.values):
                yield bound, against or bound.against or "", None
            elif against is None:
                yield bound, "", self.least(bound.form)
            else:
                base = self.least(against)
                yield bound, against, self.least(bound.form) / base if base else float("inf")

    def as_json(self) -> dict[str, Any]:
        forms = [
            {
                "form": name,
                "kind": self.kinds[name],
                "minimum": min(values),
                "median": statistics.median(values),
                "values": values,
            }
            for name, values in self.values.items()
        ]
        bounds = [
            {"form": bound.form, "against": against, "most": bound.most, "found": found}
            for bound, against, found in self.ratios()
        ]
        return {"line": self.line, "row": self.row.title, "unit": self.row.unit, "forms": forms, "bounds": bounds}


class Bench:
    """What a case may use: sessions, twins, peers, sizes."""

    peer_patience_s = 20.0  # for one run of a peer

    def __init__(self, *, threads: int, repeats: int, smoke: bool, peers: dict[str, Any]) -> None:
        self.threads, self.repeats, self.smoke, self._peers = threads, 1 if smoke else repeats, smoke, peers
        self._open = contextlib.ExitStack()
        self.said: list[str] = []

    def size(self, full: int, tiny: int) -> int:
        """The size that the table asks for; a tiny one where only answers count."""
        return tiny if self.smoke else full

    def say(self, text: str) -> None:
        """A line about this run that belongs into the record."""
        self.said.append(text)
        print(f"  ({text})", flush=True)

    @cached_property
    def twins(self) -> Any:
        from twins import Twins

        return Twins(self.threads)

    @cached_property
    def here(self) -> Any:
        """A session in this process."""
        import eagle

        return self._open.enter_context(eagle.local(threads=self.threads))

    @cached_property
    def daemon(self) -> Daemon:
        """An eagled of this run's own, with as many threads, without a cache on disk."""
        return self.new_daemon(self._open)

    def new_daemon(self, stack: contextlib.ExitStack, *options: str) -> Daemon:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eagle-")))
        daemon = Daemon(folder, "--threads", str(self.threads), "--cache-dir", "", *options)
        stack.callback(daemon.stop)
        return daemon

    @cached_property
    def there(self) -> Any:
        """A session in that daemon."""
        import eagle

        return self._open.enter_context(eagle.connect(self.daemon.endpoint, timeout=60.0))

    def sessions(self) -> list[tuple[str, Any]]:
        """In process, and the daemon where the clock counts what it does."""
        return [(IN_PROCESS, self.here)] if not Clock.passes() else [(IN_PROCESS, self.here), (DAEMON, self.there)]

    def peers(self, case: str, tolerance: float, only: Sequence[str] = (), **params: Any) -> list[Form]:
        """A form of every peer that is installed and has this case."""
        forms = []
        for name, peer in self._peers.items():
            if only and name not in only:
                continue
            try:
                forms.append(peer.form(case, tolerance, {"threads": self.threads, **params}))
            except Unavailable as why:
                self.say(f"{name}: {case}: {why}")
        return forms

    def close(self) -> None:
        self._open.close()


def sample(array: Any) -> np.ndarray:
    """A part of an array that is quickly sent and compared, of the last numbers too."""
    flat = np.asarray(array).ravel()
    step = max(1, flat.size // ANSWER_ITEMS)
    return flat[::-1][::step].copy()


def compare(row: Row, form: Form, found: Sequence[Any], expected: Sequence[Any]) -> None:
    """WrongAnswer where an array differs from the expected one by more than the form may."""
    if len(found) != len(expected):
        raise WrongAnswer(f"{row.title}: {form.name}: {len(found)} arrays, expected {len(expected)}")
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        a, b = np.asarray(one), np.asarray(other)
        if a.shape != b.shape:
            raise WrongAnswer(f"{row.title}: {form.name}: array {number} has shape {a.shape}, expected {b.shape}")
        if form.tolerance is None:
            wrong = np.flatnonzero(a.view(np.uint8) != b.view(np.uint8)) if a.dtype == b.dtype else np.array([0])
            at = wrong[0] // a.itemsize if wrong.size else None
        else:
            allowed = form.tolerance * max(1e-300, float(np.max(np.abs(b), initial=0.0)))
            far = np.flatnonzero(~(np.abs(a.astype(float) - b.astype(float)) <= allowed))
            at = far[0] if far.size else None
        if at is not None:
            raise WrongAnswer(
                f"{row.title}: {form.name}: array {number}, element {at}: found {a.ravel()[at]!r}, "
                f"expected {b.ravel()[at]!r}"
            )


def is_seen(form: Form) -> bool:
    """Whether the clock counts what this form does: processor time is that of this process alone."""
    return Clock.passes() or not (form.kind == PEER or form.name.startswith(DAEMON) or form.values is not None)


def check_answers(bench: Bench, row: Row) -> list[Form]:
    """Every form once, compared with the first one that has an answer. The forms that are to be timed: a peer that
    errs, or that takes longer than anybody wants to wait nine times, is named and left out."""
    expected = None
    kept = []
    for form in row.forms:
        if form.values is not None:
            kept.append(form)
            continue
        try:
            took = form.measure() * form.units  # warms up as well
            if form.kind == PEER and took > bench.peer_patience_s:  # perhaps it was compiling
                took = form.measure() * form.units
            if form.answer is not None:
                found = [sample(array) for array in form.answer()]
                if expected is None:
                    expected = found
                else:
                    compare(row, form, found, expected)
        except WrongAnswer as error:
            if form.kind != PEER:
                raise
            bench.say(f"without {form.name}: {error}")
            continue
        if form.kind == PEER and took > bench.peer_patience_s:
            bench.say(f"{row.title}: without {form.name}, which took {took:.0f} s to do it once")
        else:
            kept.append(form)
    return kept


def measure(bench: Bench, line: int, row: Row) -> Measured:
    """Answers first, then all forms in turn."""
    row.forms = [form for form in row.forms if is_seen(form)]
    forms = check_answers(bench, row)
    values: dict[str, list[float]] = {form.name: list(form.values or []) for form in forms}
    running = [form for form in forms if form.values is None]
    assert len(values) == len(forms), f"{row.title}: two forms of one name"
    repeats = min(bench.repeats, row.repeats or bench.repeats)
    for repeat in range(repeats):
        turn = repeat % max(1, len(running))
        for form in running[turn:] + running[:turn]:
            time.sleep(0 if bench.smoke else SETTLE_S)
            values[form.name].append(form.measure())
    return Measured(line, row, values, {form.name: form.kind for form in forms})


def environment_of_children() -> dict[str, str]:
    """For programs of the build: nothing that a developer has set, nothing that another build kept on disk."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EAGLE") or name in WHICH_GPUS}
    return {**kept, "EAGLE_CACHE_DIR": "", "EAGLE_BUILD_DIR": str(BUILD)}
