"""Second copies of late shards: a batch does not wait for one slow worker while others have nothing to do."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, Mapping

from eagle.errors import refusal

if TYPE_CHECKING:
    from eagle.cluster._driver import Engine, Piece

#: No shard is late before, whatever the others took: looking at an engine has its price.
LEAST_S = 1.0


def late_of(where: str, late: Any) -> float | None:
    """How many times the median of the batch a shard may take; None: however long it takes."""
    if late is None:
        return None
    if isinstance(late, bool) or not isinstance(late, (int, float)):
        raise refusal("WRONG_TYPE", f"{where}: late: expected a number or None, found {type(late).__name__}")
    if not late >= 1:
        raise refusal("BAD_VALUE", f"{where}: late: expected at least 1 (times the median of the shards), found {late}")
    return float(late)


class Copies:
    """Says which shards of a batch of so many are to be begun a second time.

    A shard is late when it has been under way for ``engine.late`` times the median of those that are done, more than
    half of all, and a worker has had nothing to do for that median. Each has one copy at most. A shard is a pure
    function of what it is given, so whichever of the two ends first gives the bits of the other.
    """

    def __init__(self, engine: Engine, shards: int) -> None:
        self._engine, self._shards = engine, shards
        self._seconds: list[float] = []
        self._looked = 0.0
        self._idle = 0
        self._idle_since: float | None = None

    def note(self, told: Mapping[str, Any]) -> None:
        """A shard is done."""
        self._seconds.append(float(told["seconds"]))

    def due(self, running: Mapping[Any, Piece]) -> list[Any]:
        """Tickets of shards to be copied now, the oldest first, no more than workers are idle."""
        late = self._engine.late
        if late is None or 2 * len(self._seconds) <= self._shards or not running:
            return []
        now, median = time.monotonic(), statistics.median(self._seconds)
        if now - self._looked >= LEAST_S / 2:
            self._looked, self._idle = now, self._engine.idle()
            self._idle_since = None if not self._idle else (self._idle_since or now)
        if self._idle_since is None or now - self._idle_since < max(LEAST_S, median):
            return []
        old = [
            ticket
            for ticket, piece in running.items()
            if not piece.copied and piece.copy_of is None and now - piece.started >= max(LEAST_S, late * median)
        ]
        found = sorted(old, key=lambda ticket: running[ticket].started)[: self._idle]
        self._idle -= len(found)
        return found
