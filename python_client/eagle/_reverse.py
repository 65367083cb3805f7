"""Gradients of recorded graphs and runs."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Iterator, Mapping, Sequence, Union

import numpy as np

from eagle import _core
from eagle._data_classes import NamedTuple
from eagle._nodes import _numbers
from eagle._records import GraphRecord, Record
from eagle._running import seconds_of, whole
from eagle._shown import bytes_text, pairs_html, pairs_text, seconds_text
from eagle.errors import refusal, text
from eagle.planes import Plane
from eagle.session import Host

# vjp(primals, cotangents) -> {read name: gradient}
VjpFunction = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
Names = Union[str, Sequence[str], None]


class LoopReport(NamedTuple):
    """How a loop is taken back: room for ``trips``, with its state kept every ``interval`` of them."""

    label: str
    trips: int
    interval: int


class ReverseReport(NamedTuple):
    """How gradients came about. ``nbytes`` is the memory of the reverse pass, ``record_nbytes`` that of the record."""

    host: Host
    wall_s: float
    nbytes: int
    record_nbytes: int
    loops: tuple[LoopReport, ...]

    def _rows(self) -> dict[str, Any]:
        rows = {
            "time": f"{seconds_text(self.wall_s)}, pid {self.host.pid} of {self.host.name}",
            "memory": f"{bytes_text(self.nbytes)}, beside a record of {bytes_text(self.record_nbytes)}",
        }
        for loop in self.loops:
            rows[f"loop {loop.label}"] = f"state kept every {loop.interval:,} of at most {loop.trips:,} trips"
        return rows

    def __str__(self) -> str:
        return pairs_text("report of a reverse pass", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("report of a reverse pass", self._rows())


class Gradients(Mapping[str, "np.ndarray[Any, Any]"]):
    """Gradients by name, as arrays of their own; those of Params are 0-d. ``report`` says how they were made."""

    def __init__(self, values: dict[str, np.ndarray[Any, Any]], report: ReverseReport) -> None:
        self._values = values
        self.report = report

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<eagle.diff.Gradients of {', '.join(self._values) or 'nothing'}>"

    def _rows(self) -> dict[str, Any]:
        return {**{name: _shown(value) for name, value in self._values.items()}, **self.report._rows()}

    def __str__(self) -> str:
        return pairs_text("gradients", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("gradients", self._rows())


class Reverse:
    """The reverse pass of a recorded graph or run: a graph of its own, built once and called after each launch.

    ``seeds`` are names of planes that J depends on, and calling it with J's derivatives by these gives the gradients.
    ``eagle.diff.reverse`` makes one and keeps it with the record; make it yourself to look at it (``print``), or to
    build it before it is needed. The arguments are those of :func:`eagle.diff.reverse`.

    >>> import eagle
    >>> @eagle.kernel
    ... def square(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = x * x
    ...     return y
    >>> x, y = eagle.asarray([1.0, 3.0]), eagle.zeros(2)
    >>> g = eagle.Graph(record=True).add(eagle.plan(square).bind(x=x, y=y)).build().launch()
    >>> back = eagle.diff.Reverse(g.record, ["y"])
    >>> back({"y": [1.0, 1.0]})["x"]
    array([2., 6.])
    """

    def __init__(
        self,
        record: Record,
        seeds: Sequence[str],
        *,
        wrt: Names = None,
        vjps: Mapping[str, VjpFunction] | None = None,
        checkpoint: int | None = None,
    ) -> None:
        asked = _Asked.of("Reverse", record, seeds, wrt, vjps, checkpoint)
        self._record = record
        self._calls: dict[int, Callable[..., Any]] = {}  # by number; a node's label need not be its own
        numbers = []
        for label, function in asked.vjps:
            number = next(_numbers)
            self._calls[number] = _writing(label, function)
            numbers.append((label, number))
        self._core = _core.reverse(record._core(), list(asked.seeds), asked.wrt, numbers, asked.checkpoint)
        self._rows: list[tuple[str, str, tuple[int, ...]]] = self._core.gradients

    def __call__(self, seeds: Mapping[str, Any], *, timeout: float | None = None) -> Gradients:
        """The gradients for these seeds, of what the last launch recorded.

        Raises EagleError (ValueError, TypeError) for seeds of another shape or that are missing, and where nothing
        whole is recorded; what callables raise reaches the caller unchanged.
        """
        _check_seeds(seeds)
        rows = self._core.seeds
        missing = [row[0] for row in rows if row[0] not in seeds]
        extra = [name for name in seeds if name not in [row[0] for row in rows]]
        if missing or extra:
            wrong = f"'{missing[0]}' is missing" if missing else f"'{extra[0]}' is none of this pass"
            raise refusal(
                "BAD_BINDING",
                f"reverse: seeds: {wrong}; this pass takes {', '.join(repr(row[0]) for row in rows)}",
            )
        for index, (name, dtype, shape) in enumerate(rows):
            self._core.set_seed(index, _seed(name, seeds[name], dtype, shape))
        report = self._core.launch(self._calls, 0.0 if timeout is None else seconds_of("reverse", timeout))
        values = {}
        for index, (name, dtype, shape) in enumerate(self._rows):
            values[name] = np.empty(shape, dtype)
            self._core.get_gradient(index, values[name])
        host = Host(report.host.pid, report.host.host_name)
        loops = tuple(LoopReport(*row) for row in self._core.loops)
        made = ReverseReport(host, report.wall_s, self.nbytes, self._record.nbytes, loops)
        return Gradients(values, made)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the pass itself; its peak, since it takes no more while it runs."""
        return int(self._core.bytes)

    @property
    def loops(self) -> tuple[LoopReport, ...]:
        """How loops are taken back."""
        return tuple(LoopReport(*row) for row in self._core.loops)

    @property
    def names(self) -> tuple[str, ...]:
        """What there are gradients of."""
        return tuple(row[0] for row in self._rows)

    def node_labels(self) -> list[str]:
        """Labels of the nodes of the pass."""
        return list(self._core.graph().node_labels())

    def _fits(self) -> bool:
        return bool(self._core.fits())

    def __str__(self) -> str:
        return _core.picture(self._core.graph(), "text").rstrip("\n")

    def to_svg(self) -> str:
        """The picture of the pass, as :meth:`eagle.Graph.to_svg` draws graphs."""
        return _core.picture(self._core.graph(), "svg")

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.to_svg()

    def __repr__(self) -> str:
        return f"<eagle.diff.Reverse of {', '.join(row[0] for row in self._core.seeds)} by {', '.join(self.names)}>"


class _Asked(NamedTuple):
    """The arguments of a reverse pass, looked at."""

    seeds: tuple[str, ...]
    wrt: list[str] | None
    vjps: tuple[tuple[str, VjpFunction], ...]
    checkpoint: int

    @classmethod
    def of(
        cls,
        where: str,
        record: Any,
        seeds: Any,
        wrt: Names,
        vjps: Mapping[str, VjpFunction] | None,
        checkpoint: int | None,
    ) -> _Asked:
        if not isinstance(record, Record):
            hint = ""
            if record is None:
                hint = (
                    "; a graph has one once it is built with record=True: eagle.Graph(record=True), build(), launch()"
                )
            raise refusal(
                "GRAPH_STATE" if record is None else "WRONG_TYPE",
                f"{where}: record: expected the record of a graph or run (g.record), found "
                f"{type(record).__name__}{hint}",
            )
        names = _names(where, "seeds", seeds)
        if not names:
            raise refusal(
                "BAD_VALUE",
                f"{where}: seeds: there is none; give the derivative of what you are after by a plane that the graph "
                "writes: {'y': dJ_dy}",
            )
        wanted = record._names if wrt is None else _names(where, "wrt", wrt)
        if wanted is not None and not wanted:
            raise refusal("BAD_VALUE", f"{where}: wrt is empty; name planes or Params, or leave it out for all")
        if vjps is not None and not isinstance(vjps, AbstractMapping):
            raise refusal(
                "WRONG_TYPE",
                f"{where}: vjps: expected a dict of functions by the labels of nodes, found {type(vjps).__name__}",
            )
        functions = {} if vjps is None else dict(vjps)
        for label, function in functions.items():
            if not isinstance(label, str):
                raise refusal("WRONG_TYPE", f"{where}: vjps: expected labels of nodes, found {label!r}")
            if not callable(function):
                raise refusal(
                    "WRONG_TYPE",
                    f"{where}: vjps: '{label}': expected vjp(primals, cotangents), found {type(function).__name__}",
                )
        known = list(record._callables())
        unknown = [label for label in functions if label not in [name for name, _ in known]]
        if unknown:
            candidates = ", ".join(f"'{name}'" for name, _ in known) or "none"
            raise refusal(
                "UNKNOWN_NAME",
                f"{where}: vjps: '{unknown[0]}' is no callable of this graph; there are {candidates}",
            )
        of_nodes = []
        for label, node in known:
            own = getattr(node, "_vjp", None)
            if own is not None and label not in functions:
                of_nodes.append((label, own))
        steps = 0 if checkpoint is None else whole(f"{where}: checkpoint", checkpoint, least=1)
        return cls(names, None if wanted is None else list(wanted), (*functions.items(), *of_nodes), steps)

    def key(self, record: Record) -> Any:
        """What tells passes apart; functions by themselves, which the key keeps."""
        wanted = None if self.wrt is None else tuple(self.wrt)
        return record._core().structure, self.seeds, wanted, self.vjps, self.checkpoint


def reverse(
    record: Record,
    seeds: Mapping[str, Any],
    *,
    wrt: Names = None,
    vjps: Mapping[str, VjpFunction] | None = None,
    checkpoint: int | None = None,
    timeout: float | None = None,
) -> Gradients:
    """Gradients of a number J through a recorded graph or run.

    ``record`` is ``g.record`` of a graph that was built with ``record=True`` and launched, or of a recorded run
    (:func:`eagle.diff.simulate`). ``seeds`` are the derivatives of J by planes that the graph writes, by name ("y" is
    the last value written under that name, "node.y" the one that this node left), each shaped like its plane. The
    result has the derivatives of J by what the graph was given: planes by the names that nodes have for them ("x", or
    "node.x" where nodes have different arrays of that name), and Params as 0-d arrays. ``wrt`` names those that are
    wanted.

    ``vjps`` has the derivatives of callables by the labels of their nodes: ``vjp(primals, cotangents)`` is given what
    the node read and J's derivatives by what it wrote, by name, and returns those by what it read (None for zeros).
    ``checkpoint`` is the number of trips of a loop, or steps of a run, between two states that are kept: more of them
    take less memory and the same time. None chooses the least, about the square root of the trips.

    The pass is a graph of its own in the same session, built by the first call and replayed by later ones. It reads
    the graph's planes: leave them alone between launch and reverse. Raises EagleError: ValueError for names and
    shapes, for a callable on the way without a vjp, RuntimeError where nothing is recorded.

    >>> import eagle
    >>> @eagle.kernel
    ... def spring(x: eagle.Scalar, k: eagle.Param) -> eagle.Scalar:
    ...     energy = 0.5 * k * x * x
    ...     return energy
    >>> x, energy, total = eagle.asarray([1.0, 2.0]), eagle.zeros(2), eagle.zeros(1)
    >>> g = eagle.Graph(record=True).add(eagle.plan(spring).bind(x=x, k=10.0, energy=energy))
    >>> g = g.add_node(eagle.reduce(energy, total), name="total").build().launch()
    >>> gradients = eagle.diff.reverse(g.record, {"total.out": [1.0]})
    >>> gradients["x"], gradients["k"]
    (array([10., 20.]), array(2.5))
    """
    _check_seeds(seeds)
    asked = _Asked.of("reverse", record, list(seeds), wrt, vjps, checkpoint)
    made = record._remembered(
        asked.key(record), lambda: Reverse(record, asked.seeds, wrt=wrt, vjps=vjps, checkpoint=checkpoint)
    )
    return made(seeds, timeout=timeout)


def _names(where: str, what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, (list, tuple)):
        raise refusal("WRONG_TYPE", f"{where}: {what}: expected names, found {type(given).__name__}")
    for name in given:
        if not isinstance(name, str):
            raise refusal("WRONG_TYPE", f"{where}: {what}: expected names, found {name!r}")
        text(f"{where}: {what}", name)
    return tuple(given)


def _check_seeds(seeds: Any) -> None:
    if not isinstance(seeds, AbstractMapping):
        raise refusal(
            "WRONG_TYPE", f"reverse: seeds: expected a dict of derivatives by name, found {type(seeds).__name__}"
        )


def _shown(value: np.ndarray[Any, Any]) -> str:
    """A number as it is, an array by what it is."""
    return repr(float(value)) if value.ndim == 0 else f"{value.dtype} {value.shape}"


def _seed(name: str, value: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The values of a seed as its plane has them."""
    array = value.numpy() if isinstance(value, Plane) else np.asarray(value)
    if array.dtype.kind not in "fiu" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise refusal("WRONG_DTYPE", f"reverse: seed '{name}': expected real numbers, found {array.dtype}")
    if array.shape != shape:
        raise refusal(
            "WRONG_SHAPE",
            f"reverse: seed '{name}': expected the shape of its plane, {shape}, found {array.shape}",
        )
    return np.ascontiguousarray(array, dtype).reshape(shape)


def _writing(label: str, function: VjpFunction) -> Callable[..., None]:
    """The function, as the core calls it: its results are stored where they are wanted."""

    def call(primals: dict[str, Any], cotangents: dict[str, Any], gradients: dict[str, Any]) -> None:
        for array in (*primals.values(), *cotangents.values()):
            array.flags.writeable = False
        found = function(primals, cotangents)
        where = f"reverse: vjp of '{label}'"
        if not isinstance(found, AbstractMapping):
            raise refusal(
                "WRONG_TYPE", f"{where}: expected a dict of gradients by name, it returned {type(found).__name__}"
            )
        for name in found:
            if name not in primals:
                raise refusal("UNKNOWN_NAME", f"{where}: it returned '{name}'; the node reads {', '.join(primals)}")
        for name, into in gradients.items():
            if name not in found:
                raise refusal(
                    "BAD_BINDING",
                    f"{where}: the gradient of '{name}' is missing from what it returned; return None for zeros",
                )
            if found[name] is None:
                continue
            value = np.asarray(found[name])
            if value.dtype.kind not in "fiu":
                raise refusal(
                    "WRONG_DTYPE",
                    f"{where}: the gradient of '{name}': expected real numbers, it returned {value.dtype}",
                )
            if value.shape != into.shape:
                raise refusal(
                    "WRONG_SHAPE",
                    f"{where}: the gradient of '{name}': expected shape {into.shape}, it returned {value.shape}",
                )
            into[...] = value

    return call


__all__ = ["Gradients", "GraphRecord", "LoopReport", "Record", "Reverse", "ReverseReport", "VjpFunction", "reverse"]
