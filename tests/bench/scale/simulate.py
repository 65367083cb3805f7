"""A discrete-event model of one batch over very many daemons: measured costs in, modelled network and failures.

    simulate.py [--daemons 10000] [--samples 1e12] [--chunk 16777216] [--costs costs.json] [--seed 1] [--sweep]

What is modelled: one scheduler that hands out shards one after another and takes reports in (each costs it time, and
bytes on its line); daemons that compute a shard, store what it made on storage that they share, and report; daemons
that are slow for good, shards that are slow by chance, daemons that fail and come back; a second copy of a shard that
is late. What is not: contention inside a node, routes of the network, a scheduler that fails. All randomness comes from
the seed, and events of one time happen in the order in which they were made: the same options give the same numbers.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import sys
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

COSTS = Path(__file__).with_name("costs.json")


@dataclass(frozen=True)
class Costs:
    """What was measured (costs.json says how), and what is assumed. Seconds and bytes."""

    sample_s: float  # of one sample's whole run, on one daemon
    shard_s: float  # to begin and end a shard on a warm worker: bind, planes, report
    build_s: float  # the first shard of a model on a daemon: verify and compile
    schedule_s: float  # of the scheduler, for a shard handed out and its report taken in
    combine_s: float  # of the asker, for each report that is combined
    sent_bytes: float  # through the scheduler, a shard
    received_bytes: float
    # Assumed.
    latency_s: float = 0.0005  # one way
    scheduler_bytes_s: float = 1.25e9  # its line: 10 Gbit/s
    storage_bytes_s: float = 2e11  # of all daemons together
    daemon_bytes_s: float = 1.25e9
    kept_bytes: float = 8.0  # stored, a sample
    slow_daemons: float = 0.01  # of all
    slow_factor: float = 4.0
    noise: float = 0.05  # standard deviation of the logarithm of a shard's time
    failures_s: float = 30 * 24 * 3600.0  # mean time between two of one daemon
    detect_s: float = 30.0  # until the scheduler knows
    back_s: float = 300.0  # until the daemon is back
    second_copy: float = 2.0  # a shard is given to a second daemon when it takes so many times the median; 0: never
    price_s: float = 0.04 / 3600  # money, of one daemon's second


@dataclass
class Outcome:
    """What came of a batch."""

    makespan_s: float = 0.0
    ideal_s: float = 0.0
    efficiency: float = 0.0
    scheduler_busy: float = 0.0  # share of the time
    scheduler_bytes: float = 0.0
    storage_busy: float = 0.0
    combine_s: float = 0.0
    shards: int = 0
    failures: int = 0
    reruns: int = 0
    copies: int = 0
    wasted_s: float = 0.0  # of daemons, for what was computed twice or lost
    price: float = 0.0
    breaks_first: str = ""
    load: dict[str, float] = field(default_factory=dict)  # of each part at full speed: above 1 it holds the others up


def loads(costs: Costs, daemons: int, chunk: int) -> dict[str, float]:
    """How much of itself each shared part needs to keep all daemons busy."""
    shard_s = chunk * costs.sample_s + costs.shard_s + chunk * costs.kept_bytes / costs.daemon_bytes_s
    rate = daemons / shard_s
    return {
        "scheduler": rate * costs.schedule_s,
        "scheduler's line": rate * (costs.sent_bytes + costs.received_bytes) / costs.scheduler_bytes_s,
        "storage": rate * chunk * costs.kept_bytes / costs.storage_bytes_s,
        "asker": rate * costs.combine_s,
    }


class Batch:
    """The state of one simulated batch."""

    def __init__(self, costs: Costs, daemons: int, samples: float, chunk: int, seed: int) -> None:
        self.costs, self.daemons, self.chunk, self.samples = costs, daemons, chunk, samples
        self.random = random.Random(seed)
        self.shards = max(1, math.ceil(samples / chunk))
        self.speed = [costs.slow_factor if self.random.random() < costs.slow_daemons else 1.0 for _ in range(daemons)]
        self.warm = [False] * daemons
        self.alive = [True] * daemons
        self.turn = [0] * daemons  # counts what a daemon began: an event of an earlier turn is void
        self.work: dict[int, tuple[int, float]] = {}  # of a busy daemon: its shard, and since when
        self.open: list[int] = []  # shards to be begun anew
        self.next = 0
        self.done = bytearray(self.shards)
        self.copied = bytearray(self.shards)
        self.left = self.shards
        self.scheduler_free = self.storage_free = 0.0
        self.scheduler_s = self.storage_s = 0.0
        self.events: list[tuple[float, int, str, int, int]] = []
        self.made = 0
        self.took: list[float] = []  # what the first shards took
        self.idle: list[int] = []
        self.outcome = Outcome(shards=self.shards)

    def run(self) -> Outcome:
        """Runs it to its end."""
        for daemon in range(self.daemons):
            self._at(self.random.expovariate(1 / self.costs.failures_s), "fails", daemon, 0)
            self._hand_out(daemon, 0.0)
        now = 0.0
        while self.left:
            now, _, what, daemon, turn = heapq.heappop(self.events)
            getattr(self, f"_{what}")(daemon, turn, now)
        return self._summed_up(now)

    # ---- events

    def _ends(self, daemon: int, turn: int, now: float) -> None:
        if turn != self.turn[daemon]:
            return
        shard, since = self.work.pop(daemon)
        if self.done[shard]:
            self.outcome.wasted_s += now - since
        else:
            self.done[shard] = 1
            self.left -= 1
            if len(self.took) < 1000:
                self.took.append(now - since)
        self._hand_out(daemon, now)

    def _fails(self, daemon: int, turn: int, now: float) -> None:
        self.outcome.failures += 1
        self.alive[daemon], self.warm[daemon] = False, False
        self.turn[daemon] += 1
        lost = self.work.pop(daemon, None)
        if lost is not None:
            self.outcome.wasted_s += now - lost[1]
            self._at(now + self.costs.detect_s, "found_out", lost[0], 0)
        self._at(now + self.costs.back_s, "back", daemon, 0)
        self._at(now + self.random.expovariate(1 / self.costs.failures_s), "fails", daemon, 0)

    def _back(self, daemon: int, turn: int, now: float) -> None:
        self.alive[daemon] = True
        if daemon not in self.work:
            self._hand_out(daemon, now)

    def _found_out(self, shard: int, turn: int, now: float) -> None:
        if self.done[shard] or any(mine == shard for mine, _ in self.work.values()):
            return
        self.outcome.reruns += 1
        self.open.append(shard)
        self._wake(now)

    def _looks(self, daemon: int, turn: int, now: float) -> None:
        """Whether what a daemon works on is late; then somebody idle begins it, too."""
        if turn != self.turn[daemon] or daemon not in self.work:
            return
        shard, _ = self.work[daemon]
        if not self.done[shard] and not self.copied[shard] and self.idle:
            self.copied[shard] = 1
            self.outcome.copies += 1
            self.open.append(shard)
            self._wake(now)

    # ---- details

    def _at(self, time: float, what: str, daemon: int, turn: int) -> None:
        self.made += 1
        heapq.heappush(self.events, (time, self.made, what, daemon, turn))

    def _wake(self, now: float) -> None:
        while self.open and self.idle:
            daemon = self.idle.pop()
            if self.alive[daemon] and daemon not in self.work:
                self._hand_out(daemon, now)

    def _hand_out(self, daemon: int, now: float) -> None:
        if not self.alive[daemon]:
            return
        while self.open and self.done[self.open[-1]]:
            self.open.pop()
        if self.open:
            shard = self.open.pop()
        elif self.next < self.shards:
            shard, self.next = self.next, self.next + 1
        else:
            self.idle.append(daemon)
            for other, (late, since) in list(self.work.items()) if len(self.work) < 200 else ():
                if not self.done[late] and not self.copied[late] and self.costs.second_copy:
                    self._at(max(now, since + self._late_after()), "looks", other, self.turn[other])
            return
        self._begin(daemon, shard, now)

    def _late_after(self) -> float:
        took = sorted(self.took)
        return self.costs.second_copy * took[len(took) // 2] if took else math.inf

    def _begin(self, daemon: int, shard: int, now: float) -> None:
        costs, count = self.costs, min(self.chunk, self.samples - shard * self.chunk)
        line = (costs.sent_bytes + costs.received_bytes) / costs.scheduler_bytes_s
        served = max(now, self.scheduler_free) + max(costs.schedule_s, line)
        self.scheduler_free, self.scheduler_s = served, self.scheduler_s + max(costs.schedule_s, line)
        self.outcome.scheduler_bytes += costs.sent_bytes + costs.received_bytes
        compute = count * costs.sample_s * self.speed[daemon] * math.exp(self.random.gauss(0.0, costs.noise))
        first = 0.0 if self.warm[daemon] else costs.build_s
        self.warm[daemon] = True
        computed = served + costs.latency_s + first + costs.shard_s + compute
        stored = self._stored(computed, count)
        self.turn[daemon] += 1
        self.work[daemon] = shard, now
        self._at(stored + costs.latency_s, "ends", daemon, self.turn[daemon])

    def _stored(self, now: float, count: float) -> float:
        """Shared storage takes turns as one server of the bandwidth of all; a daemon's own line bounds it, too."""
        size = count * self.costs.kept_bytes
        mine = size / self.costs.storage_bytes_s
        self.storage_s += mine
        # Requests come in the order in which they are handed out, not in that of their times: what is owed so far.
        owed = max(0.0, self.storage_s - now)
        return now + max(size / self.costs.daemon_bytes_s, mine + owed)

    def _summed_up(self, now: float) -> Outcome:
        out, costs = self.outcome, self.costs
        out.combine_s = self.shards * costs.combine_s
        out.makespan_s = now + max(0.0, out.combine_s - now)  # reports are combined while others compute
        out.ideal_s = self.samples * costs.sample_s / self.daemons
        out.efficiency = out.ideal_s / out.makespan_s
        out.scheduler_busy, out.storage_busy = self.scheduler_s / out.makespan_s, self.storage_s / out.makespan_s
        out.price = out.makespan_s * self.daemons * costs.price_s
        out.load = loads(costs, self.daemons, self.chunk)
        out.breaks_first = max(out.load, key=lambda part: out.load[part])
        return out


def costs_of(path: Path) -> Costs:
    """Measured costs, and whatever the file assumes otherwise."""
    said = json.loads(path.read_text())
    names = {one.name for one in fields(Costs)}
    unknown = sorted(said.keys() - names - {"about"})
    if unknown:
        raise SystemExit(f"{path}: there is no cost '{unknown[0]}'; there are {', '.join(sorted(names))}")
    return Costs(**{name: value for name, value in said.items() if name in names})


def simulate(costs: Costs, daemons: int, samples: float, chunk: int, seed: int) -> Outcome:
    """One batch."""
    return Batch(costs, daemons, samples, chunk, seed).run()


def row(daemons: int, chunk: int, out: Outcome) -> str:
    """Of the table."""
    load = ", ".join(f"{name} {value:.2g}" for name, value in out.load.items())
    return (
        f"| {daemons:,} | {chunk:,} | {out.shards:,} | {out.makespan_s:,.0f} | {out.efficiency:.3f} | "
        f"{out.scheduler_busy:.3f} | {out.failures:,} / {out.reruns:,} / {out.copies:,} | {out.price:,.0f} | {load} |"
    )


HEAD = (
    "| daemons | samples a shard | shards | makespan, s | efficiency | scheduler busy | "
    "failures / begun anew / copies | price | load at full speed |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main(words: list[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemons", type=int, default=10_000)
    parser.add_argument("--samples", type=float, default=1e12)
    parser.add_argument("--chunk", type=int, default=1 << 24)
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another cost")
    parser.add_argument("--sweep", action="store_true", help="the table of docs/design/scale.md")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    costs = costs_of(asked.costs)
    for word in asked.set:
        name, _, value = word.partition("=")
        if name not in {one.name for one in fields(Costs)}:
            parser.error(f"--set {word}: there is no cost '{name}'")
        costs = replace(costs, **{name: float(value)})
    if min(asked.daemons, asked.chunk) < 1 or asked.samples < 1:
        parser.error("expected at least one daemon, one sample, and one sample a shard")
    grid = [(asked.daemons, asked.chunk)]
    if asked.sweep:
        grid = [(daemons, 1 << 24) for daemons in (100, 1000, 100_000)]
        grid[2:2] = [(10_000, 1 << bits) for bits in (20, 22, 24, 26)]
    if not asked.json:
        print(HEAD)
    for daemons, chunk in grid:
        out = simulate(costs, daemons, asked.samples, chunk, asked.seed)
        print(json.dumps(asdict(out)) if asked.json else row(daemons, chunk, out), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
