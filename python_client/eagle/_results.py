"""What comes of a run: its result and its report."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from eagle._data_classes import NamedTuple
from eagle._shown import pairs_html, pairs_text, put_right_rows, seconds_text
from eagle.session import Array, Host

if TYPE_CHECKING:
    from eagle.interop.xarray import Labels


class GroupReport(NamedTuple):
    """What came of a dispatch group.

    ``policy`` is how it ran in the end ("switch", "predicated" or "segmented"), ``counts`` the samples by the branch
    that they took when they were last looked at, ``gain`` the time of the fused form over that of the split one as it
    was predicted (1.0 where nobody asked).
    """

    policy: str
    counts: tuple[int, ...]
    gain: float


class RunReport(NamedTuple):
    """What a run says about itself, as told by the process that computed.

    ``host`` is its (pid, name); ``finished`` counts the samples that this run finished, ``launches`` the
    passes over them, of at most ``fused_steps`` steps each; ``mode`` is "fused" (one kernel), "tiled" (several, tile by
    tile) or "stepwise" (each kernel over all samples). ``dispatch`` is a :class:`GroupReport` by group, and
    ``measured_gain`` what one tile took fused over what it took split, by group that was tried. ``compactions`` counts
    how often the live samples of a tile were packed together. ``backend`` is where it computed ("cpu", "cuda:0"), and
    ``schedule`` on a GPU "cuda_graph", or "host_loop: ..." with the reason why the host looks after each step.
    ``build_s`` and ``wall_s`` are seconds; ``compiled`` is False where compiled code was found in the cache.
    ``clamped`` counts indices outside of their table (the nearest
    element was taken), ``dropped`` additions outside of their accumulator (nothing was added), ``zero_divisions``
    integer divisions by zero (which give 0).
    """

    host: Host
    n: int
    samples: int
    finished: int
    launches: int
    steps: int
    threads: int
    build_s: float
    wall_s: float
    compiled: bool
    clamped: int
    zero_divisions: int
    dropped: int
    mode: str
    fused_steps: int
    records: int
    compactions: int
    dispatch: Mapping[str, GroupReport]
    measured_gain: Mapping[str, float]
    backend: str = "cpu"
    schedule: str = ""

    @classmethod
    def of(cls, found: Any) -> RunReport:
        """The report as the core tells it."""
        groups = {name: GroupReport(policy, counts, gain) for name, policy, counts, gain, _ in found.dispatch}
        measured = {row[0]: row[4] for row in found.dispatch if row[4] > 0}
        return cls(
            host=Host(found.host.pid, found.host.host_name),
            n=found.samples,
            samples=found.samples,
            finished=found.finished,
            launches=found.launches,
            steps=found.steps,
            threads=found.threads,
            build_s=found.build_s,
            wall_s=found.wall_s,
            compiled=found.compiled,
            clamped=found.clamped,
            zero_divisions=found.zero_divisions,
            dropped=found.dropped,
            mode=found.mode,
            fused_steps=found.fused_steps,
            records=found.records,
            compactions=found.compactions,
            dispatch=MappingProxyType(groups),
            measured_gain=MappingProxyType(measured),
            backend=found.backend,
            schedule=found.schedule,
        )

    def _rows(self) -> dict[str, Any]:
        """What a person wants to know first; counts of what was put right where there is one."""
        rows: dict[str, Any] = {
            "samples": f"{self.finished:,} of {self.n:,} finished",
            "steps": f"{self.steps:,}, in {self.launches:,} passes of at most {self.fused_steps:,}",
            "time": f"{seconds_text(self.wall_s)} on {self._place()}",
            "build": seconds_text(self.build_s) + ("" if self.compiled else ", compiled code from the cache"),
            "mode": self.mode,
            "host": f"pid {self.host.pid} of {self.host.name}",
        }
        if self.records:
            rows["records"] = f"{self.records:,}"
        if self.compactions:
            rows["packed together"] = f"{self.compactions:,} times"
        for name, group in self.dispatch.items():
            rows[f"dispatch {name}"] = f"{group.policy}, samples by branch {', '.join(map(str, group.counts))}"
        rows.update(put_right_rows(self.clamped, self.dropped, self.zero_divisions))
        return rows

    def _place(self) -> str:
        return f"{self.threads} threads" if self.backend == "cpu" else self.backend

    def __str__(self) -> str:
        return pairs_text("report of a run", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("report of a run", self._rows())

    def __reduce__(self) -> tuple[Any, ...]:
        return _report, (
            {**self._asdict(), "dispatch": dict(self.dispatch), "measured_gain": dict(self.measured_gain)},
        )


def _report(fields: dict[str, Any]) -> RunReport:
    """A report that was sent from another process."""
    fields["dispatch"], fields["measured_gain"] = (
        MappingProxyType(fields[name]) for name in ("dispatch", "measured_gain")
    )
    return RunReport(**fields)


class ShardPart(NamedTuple):
    """What a result knows of the batch that its samples are a part of."""

    place: tuple[int, int, int]  # base, count, n
    told: bytes  # the result as the core tells it
    roles: dict[str, str]  # of planes, by name


class SimResult:
    """What came of a run: the caller's own arrays by name, as attributes and items, and how it ended.

    ``status`` is "finished", "max_steps", "cancelled" or "deadline"; ``steps`` the number of the last step that
    any sample took; ``finished`` the mask (None for a model without one) and ``done`` whether all of it is
    set; ``wall_s`` seconds. A plane whose name is one of these is reached as an item: ``result["steps"]``.

    ``records`` are the recorded planes by name, each (records, ...), and ``record_steps`` (int64) the steps after which
    they were taken. With ``events=True``, ``stop_step`` (int64, (N,)) is the number of the step in which each sample
    finished, 0 for one that did not finish in this run, and ``t_stop`` the plane ``t`` where the model has one: the
    time at which a finished sample stopped. Both are None without.

    ``steps_taken`` (int64, (N,)) is how many steps each sample has taken that had not finished when the run ended: the
    same for all, unless a cancel or a deadline left them at different whole steps. It says nothing of finished samples:
    ``stop_step`` does.

    ``shard`` is the (base, count, n) that was asked for, or None; see :func:`eagle.combine_shards`. A result can be
    pickled.

    Where arguments were ``xarray.DataArray`` all of these are, over the same memory and with the labels of the samples;
    the rows of records are along ``record_step``.
    """

    def __init__(
        self,
        planes: dict[str, Array],
        mask: str | None,
        status: str,
        report: RunReport,
        *,
        records: dict[str, Array] | None = None,
        every: int = 1,
        stop_step: Array | None = None,
        ranges: Sequence[tuple[int, int]] = (),
        shard: ShardPart | None = None,
        labels: Labels | None = None,
    ) -> None:
        self._planes = planes
        self._mask = mask
        self._every = every
        self._ranges = tuple(ranges)
        self._shard = shard
        self.shard = shard.place if shard is not None else None
        self._labels = labels
        self.done: bool = status == "finished"
        self.steps: int = report.steps
        self.status: str = status
        self.wall_s: float = report.wall_s
        self.report = report
        self._records = records or {}
        self.record_steps: Array = every * np.arange(report.records)
        self._stop_step = stop_step

    @property
    def finished(self) -> Array | None:
        """The mask; None for a model without one."""
        return self[self._mask] if self._mask is not None else None

    @property
    def records(self) -> Mapping[str, Array]:
        """The recorded planes by name."""
        rows = self._records
        if self._labels is not None:
            rows = {name: self._labels.of_records(name, array, self.record_steps) for name, array in rows.items()}
        return MappingProxyType(rows)

    @property
    def stop_step(self) -> Array | None:
        """The step in which each sample finished; None without ``events=True``."""
        return None if self._stop_step is None else self._labelled("stop_step", self._stop_step)

    @property
    def t_stop(self) -> Array | None:
        """The plane ``t``, where there is one and ``events=True``."""
        return None if self._stop_step is None or "t" not in self._planes else self["t"]

    @property
    def steps_taken(self) -> Array:
        """Steps that each sample has taken."""
        taken: Array = np.full(self.report.n, self.steps, np.int64)
        begin = 0
        for end, steps in self._ranges:
            taken[begin:end] = steps
            begin = end
        return self._labelled("steps_taken", taken)

    def _over(self, change: Callable[[Array], Array]) -> SimResult:
        """The same over other arrays: what ``change`` makes of each."""
        made = SimResult.__new__(SimResult)
        made.__dict__.update(self.__dict__)
        made._planes = {name: change(array) for name, array in self._planes.items()}
        made._records = {name: change(array) for name, array in self._records.items()}
        made._stop_step = None if self._stop_step is None else change(self._stop_step)
        return made

    def _labelled(self, name: str, array: Array) -> Array:
        return array if self._labels is None else self._labels.of_samples(name, array)

    def __getitem__(self, name: str) -> Array:
        plane = self._planes[name]
        return plane if self._labels is None else self._labels.plane(name, plane)

    def __getattr__(self, name: str) -> Array:
        planes: dict[str, Array] = self.__dict__.get("_planes", {})
        if name in planes:
            return self[name]
        raise AttributeError(f"a result has no '{name}'; its arrays are {', '.join(planes)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._planes)

    def keys(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(self._planes)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._planes]

    def __repr__(self) -> str:
        return (
            f"<eagle.SimResult {self.status}: {self.steps} steps, {self.report.finished} of {self.report.n} samples "
            f"finished, {self.wall_s:.3g} s>"
        )

    def _rows(self) -> dict[str, Any]:
        rows: dict[str, Any] = {
            "status": self.status,
            "steps": f"{self.steps:,}",
            "samples": f"{self.report.finished:,} of {self.report.n:,} finished",
            "time": seconds_text(self.wall_s),
        }
        if self._records:
            rows["records"] = f"{', '.join(self._records)}, after {len(self.record_steps):,} steps each"
        if self.shard is not None:
            base, count, n = self.shard
            rows["shard"] = f"samples {base:,} to {base + count - 1:,} of {n:,}"
        rows.update({name: f"{array.dtype} {array.shape}" for name, array in self._planes.items()})
        return rows

    def __str__(self) -> str:
        return pairs_text("result of a run", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows: how it ended, and which arrays there are."""
        return pairs_html("result of a run", self._rows())
