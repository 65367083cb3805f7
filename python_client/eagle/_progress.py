"""Progress of a run: for a callable of the user's, on a terminal, or in a notebook."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from typing import Any, Callable

from eagle._data_classes import NamedTuple
from eagle._shown import escape
from eagle.errors import refusal


class RunProgress(NamedTuple):
    """How far a run is: the last step that a sample took, samples finished so far, and what there are of both."""

    steps: int
    finished: int
    max_steps: int
    n: int

    @property
    def fraction(self) -> float:
        """From 0 to 1: of the samples, or of the steps, whichever is further."""
        of_samples = self.finished / self.n if self.n else 1.0
        return max(of_samples, self.steps / self.max_steps if self.max_steps else 1.0)


class Bar:
    """One line that is drawn again and again: on stderr where that is a terminal, else in a notebook's cell."""

    WIDTH = 30

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._display: Any = None
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._drawn = 0
        if not self._terminal and "ipykernel" in sys.modules:
            display = importlib.import_module("IPython.display").display
            self._display = display({"text/plain": ""}, raw=True, display_id=True)

    @property
    def visible(self) -> bool:
        """Whether anybody would see it."""
        return self._terminal or self._display is not None

    def draw(self, progress: RunProgress) -> None:
        """The bar as it is now. A run goes on where its bar cannot be drawn any more."""
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone, or closed
            self._draw(progress)

    def _draw(self, progress: RunProgress) -> None:
        line = self.line(progress, time.monotonic() - self._began)
        if self._display is not None:
            self._display.update({"text/plain": line, "text/html": self.html(progress, line)}, raw=True)
        elif self._terminal:
            sys.stderr.write("\r" + line.ljust(self._drawn))
            sys.stderr.flush()
            self._drawn = len(line)

    @classmethod
    def line(cls, progress: RunProgress, seconds: float) -> str:
        """The text.

        >>> Bar.line(RunProgress(500, 0, 1000, 64), 2.0)
        '[###############               ]  50 % step 500, 0 of 64 finished, 2.0 s'
        """
        full = int(cls.WIDTH * progress.fraction)
        return (
            f"[{'#' * full}{' ' * (cls.WIDTH - full)}] {100 * progress.fraction:3.0f} % step {progress.steps}, "
            f"{progress.finished} of {progress.n} finished, {seconds:.1f} s"
        )

    @staticmethod
    def html(progress: RunProgress, line: str) -> str:
        """The same for a notebook: a bar, and the text without its own."""
        told = escape(line.partition("] ")[2])
        return f'<progress value="{progress.fraction:.4f}" max="1" style="width: 20em"></progress> {told}'

    def close(self) -> None:
        """Leaves the line."""
        if self._terminal and self._drawn:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\n")
                sys.stderr.flush()


class Watcher:
    """What ``progress=`` asks for."""

    def __init__(self, where: str, progress: Any, max_steps: int, n: int) -> None:
        self._max_steps, self._n = max_steps, n
        self._bar = Bar() if progress is True else None
        self._callback: Callable[[RunProgress], Any] | None = progress if callable(progress) else None
        if self._bar is None and self._callback is None and progress not in (None, False):
            raise refusal(
                "WRONG_TYPE",
                f"{where}: progress: expected True, False or a callable, found {type(progress).__name__}",
            )

    def callback(self) -> Callable[[int, int], bool] | None:
        """For the core; None where nobody would hear of it."""
        if self._callback is None and (self._bar is None or not self._bar.visible):
            return None
        return self._tell

    def _tell(self, steps: int, finished: int) -> bool:
        progress = RunProgress(steps, finished, self._max_steps, self._n)
        if self._bar is not None:
            self._bar.draw(progress)
        return self._callback is None or self._callback(progress) is not False

    def close(self, report: Any) -> None:
        """The end of the run; ``report`` is None where it failed."""
        if self._bar is not None and self._bar.visible:
            if report is not None:
                self._bar.draw(RunProgress(report.steps, report.finished, self._max_steps, self._n))
            self._bar.close()
