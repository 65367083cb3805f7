"""A kernel or a recorded graph as a function of arrays, with its reverse; what the faces to frameworks share."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from eagle import graph as graphs
from eagle._derivative import differentiate
from eagle._kernel import Kernel
from eagle._nodes import Conditional, Group, Node
from eagle._records import Record
from eagle._reverse import VjpFunction, reverse
from eagle.errors import refusal
from eagle.plan import BoundPlan
from eagle.planes import Plane

Arrays = dict[str, Any]

# By graph: two functions of one graph store to the same arrays.
_locks: weakref.WeakKeyDictionary[graphs.Graph, Any] = weakref.WeakKeyDictionary()

_REALS, _INTEGERS = ("float64", "float32"), ("int64", "int32")
_PLAIN = {"i64": np.dtype(np.int64), "bool": np.dtype(np.bool_)}


class Function:
    """A function of arrays by name: ``inputs`` in order, ``outputs`` in order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: Held from a forward pass to what depends on nobody else running: calls come from any thread.
    alone: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def mark(self) -> Any:
        """Equal for as long as :meth:`backward` would go back over the same run."""
        return None

    def forward(self, given: Mapping[str, Any]) -> Arrays:
        """The outputs, in arrays of their own."""
        raise NotImplementedError

    def backward(self, given: Mapping[str, Any], cotangents: Mapping[str, Any], wanted: Sequence[str]) -> Arrays:
        """Derivatives by the wanted inputs, from those by the outputs (which may be left out where they are 0)."""
        raise NotImplementedError

    def shapes(self, given: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
        """(shape, dtype) of each output for inputs of these shapes and dtypes."""
        raise NotImplementedError

    def check(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        """Refuses an input of another kind, in the words of the caller's arrays ("float64", "bfloat16")."""
        raise NotImplementedError

    def has_derivative(self, output: str) -> bool:
        """Whether an output is of reals: others have no cotangent."""
        raise NotImplementedError

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arrays:
        """The arguments of a call by name, each once."""
        if len(args) > len(self.inputs):
            raise refusal(
                "BAD_BINDING",
                f"{self.name}: takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), found {len(args)}",
            )
        given = dict(zip(self.inputs, args))
        for name, value in kwargs.items():
            if name not in self.inputs:
                raise refusal(
                    "BAD_BINDING", f"{self.name}: there is no input '{name}'; it takes {', '.join(self.inputs)}"
                )
            if name in given:
                raise refusal("BAD_BINDING", f"{self.name}: input '{name}' is given twice")
            given[name] = value
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise refusal("BAD_BINDING", f"{self.name}: input '{missing[0]}' is missing")
        return {name: given[name] for name in self.inputs}


class KernelFunction(Function):
    """A kernel over the whole batch. Mutables are inputs and outputs: what comes in is left as it is."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.name = kernel.name
        self._rows = {row[0]: row for row in kernel.translation("f64").kernel.arguments}
        for name, (_, role, _, _) in self._rows.items():
            if role in ("accum", "terminated", "reduce"):
                raise refusal(
                    "BAD_VALUE",
                    f"function: kernel '{kernel.name}': argument '{name}' is a {role} plane, and a function of arrays "
                    "has none; put the kernel into a graph with record=True, and give that",
                )
        self.inputs = tuple(kernel.arguments)
        states = [name for name in self.inputs if self._rows[name][1] == "mutable"]
        returned = [name for name, row in self._rows.items() if row[1] == "output"]
        self.outputs = (*returned, *states)

    def check(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        _, role, scalar, _ = self._rows[name]
        if role == "param":
            if shape != ():
                raise _wrong(self.name, name, "WRONG_SHAPE", "one number, for a Param", f"shape {shape}")
            if dtype not in (_INTEGERS if scalar == "i64" else (*_REALS, *_INTEGERS)):
                wanted = "an integer" if scalar == "i64" else "a real number"
                raise _wrong(self.name, name, "WRONG_DTYPE", f"{wanted}, for a Param", dtype)
            return
        wanted_types = _REALS if scalar == "f64" else (str(_PLAIN[scalar]),)
        if dtype not in wanted_types:
            raise _wrong(self.name, name, "WRONG_DTYPE", " or ".join(wanted_types), dtype)
        if shape == ():
            raise _wrong(self.name, name, "WRONG_SHAPE", "an array of samples", "a single number")

    def has_derivative(self, output: str) -> bool:
        return self._rows[output][2] == "f64"

    def forward(self, given: Mapping[str, Any]) -> Arrays:
        arrays = self._arrays(given)
        for name, (_, role, _, _) in self._rows.items():
            if role == "mutable":
                arrays[name] = np.array(arrays[name])
        returned = [name for name, row in self._rows.items() if row[1] == "output"]
        bound = BoundPlan(self._plan(arrays), {**arrays, **self._made(arrays, returned)})
        bound.launch()
        return {name: bound.planes[name] for name in self.outputs}

    def backward(self, given: Mapping[str, Any], cotangents: Mapping[str, Any], wanted: Sequence[str]) -> Arrays:
        if not any(map(self.has_derivative, self.outputs)):
            return {name: np.zeros(np.shape(given[name])) for name in wanted}
        arrays = self._arrays(given)
        derivative = differentiate("vjp", self.kernel, tuple(wanted), "sum")
        planes = {(plane.part, plane.argument): name for name, plane in derivative.planes.items()}
        bars: Arrays = {}
        outputs = self.shapes(arrays)
        for name in filter(self.has_derivative, self.outputs):
            bar = planes[("bar", name)]
            cotangent = cotangents.get(name)
            shape, dtype = outputs[name]
            if self._rows[name][1] == "mutable":  # goes in as one thing and comes out as another
                bars[bar] = np.zeros(shape, dtype) if cotangent is None else np.array(cotangent, dtype)
            else:
                bars[bar] = np.zeros(shape, dtype) if cotangent is None else _contiguous(cotangent, dtype)
        for name in wanted:
            role = self._rows[name][1]
            bar = planes[("bar", name)]
            if role == "table":  # is added to
                bars[bar] = np.zeros_like(arrays[name])
            elif role == "param":
                bars[bar] = np.zeros(1, self._real(arrays))
            elif role == "read":
                bars[bar] = np.empty(arrays[name].shape, arrays[name].dtype)
        taken = {name: arrays[name] for (part, name) in planes if part == "primal"}
        BoundPlan(self._plan(arrays, derivative), {**taken, **bars}).launch()
        return {name: bars[planes[("bar", name)]].reshape(np.shape(given[name])) for name in wanted}

    def shapes(self, given: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
        real = self._real(given)
        n = self._samples(given)
        found = {}
        for name in self.outputs:
            _, role, scalar, extents = self._rows[name]
            if role == "mutable":
                found[name] = (tuple(np.shape(given[name])), np.dtype(given[name].dtype))
                continue
            shape = (int(np.prod(extents)), n) if extents else (n,)
            found[name] = (shape, real if scalar == "f64" else _PLAIN[scalar])
        return found

    def is_real(self, name: str) -> bool:
        """Whether there can be a derivative by this input."""
        return self._rows[name][2] == "f64"

    def _plan(self, arrays: Mapping[str, Any], kernel: Kernel | None = None) -> Any:
        from eagle.plan import Plan

        return Plan(kernel or self.kernel, self._real(arrays))

    def _real(self, given: Mapping[str, Any]) -> Any:
        for name, value in given.items():
            if self._rows[name][1] != "param" and getattr(value, "dtype", None) == np.float32:
                return np.dtype(np.float32)
        return np.dtype(np.float64)

    def _samples(self, given: Mapping[str, Any]) -> int:
        for name, (_, role, _, _) in self._rows.items():
            if role in ("read", "mutable"):
                return int(np.shape(given[name])[-1])
        raise refusal("BAD_VALUE", f"function: kernel '{self.name}' reads no plane of samples")

    def _made(self, arrays: Mapping[str, Any], names: Iterable[str]) -> Arrays:
        found = self.shapes(arrays)
        return {name: np.empty(*found[name]) for name in names}

    def _arrays(self, given: Mapping[str, Any]) -> Arrays:
        arrays: Arrays = {}
        for name, value in given.items():
            if self._rows[name][1] == "param":
                arrays[name] = int(value) if self._rows[name][2] == "i64" else float(value)
            else:
                arrays[name] = np.asarray(value)
        return arrays


class GraphFunction(Function):
    """A recorded graph: its inputs are stored to the arrays of these names, and it is launched."""

    def __init__(
        self,
        graph: graphs.Graph,
        inputs: Sequence[str],
        outputs: Sequence[str],
        vjps: Mapping[str, VjpFunction] | None,
        checkpoint: int | None,
    ) -> None:
        if graph.record is None:
            raise refusal(
                "GRAPH_STATE", "function: the graph is not built with a record; eagle.Graph(record=True), then build()"
            )
        if graph._rebound:
            raise _rebound()
        self.graph = graph
        self.name = "function"
        self.inputs, self.outputs = _texts("inputs", inputs), _texts("outputs", outputs)
        self._vjps, self._checkpoint = vjps, checkpoint
        self.alone = _locks.setdefault(graph, threading.RLock())
        planes, params = _planes_of(graph)
        self._arrays: Arrays = {}
        self._params = {name for name in self.inputs if name in params and name not in planes}
        for name in (*self.inputs, *self.outputs):
            if name in self._params:
                continue
            if name not in planes:
                raise refusal(
                    "UNKNOWN_NAME",
                    f"function: no node has a plane '{name}'; there are {', '.join(sorted(planes)) or 'none'}",
                )
            if len({id(array) for array in planes[name]}) > 1:
                raise refusal(
                    "UNKNOWN_NAME", f"function: several nodes have different arrays '{name}'; say 'node.{name}'"
                )
            self._arrays[name] = planes[name][0]
        given = [self._arrays[name] for name in self.inputs if name in self._arrays]
        self.carried = [
            f"{label}.{name}"
            for label, name in graph.record._core().carried
            if not all(_holds(given, array) for array in planes.get(f"{label}.{name}", [None]))
        ]

    def mark(self) -> Any:
        core = self._record()._core()
        return core.structure, core.launches

    def again(self, given: Mapping[str, Any]) -> None:
        """One more run with these inputs, because the record is that of another one."""
        if self.carried:
            raise refusal(
                "GRAPH_STATE",
                f"function: the graph has run since this call, and so '{self.carried[0]}' is not what it began with; "
                f"go back before the next run, or name in inputs= what runs change: {', '.join(self.carried)}",
            )
        self.forward(given)

    def refuse_carried(self) -> None:
        """For callers who call as often as they like."""
        if self.carried:
            raise refusal(
                "BAD_BINDING",
                f"function: each run of the graph begins with what '{self.carried[0]}' holds and may change it, so "
                "that calls with equal inputs differ; name it in inputs=, and in outputs= where you want what it "
                f"becomes (this concerns {', '.join(self.carried)})",
            )

    def _record(self) -> Record:
        record = self.graph.record
        assert record is not None
        return record

    def check(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        wanted = () if name in self._params else tuple(self._arrays[name].shape)
        if shape != wanted:
            what = "one number, for a Param" if name in self._params else f"shape {wanted}"
            raise _wrong(self.name, name, "WRONG_SHAPE", what, str(shape))
        into = np.dtype(np.float64) if name in self._params else np.dtype(self._arrays[name].dtype)
        try:
            fits = np.can_cast(np.dtype(dtype), into, "same_kind")  # a number is rounded, and not cut
        except TypeError:  # no type of numpy's
            fits = False
        if not fits:
            raise _wrong(self.name, name, "WRONG_DTYPE", str(into), dtype)

    def has_derivative(self, output: str) -> bool:
        return bool(self._arrays[output].dtype in (np.float64, np.float32))

    def forward(self, given: Mapping[str, Any]) -> Arrays:
        with self.alone:
            return self._forward(given)

    def _forward(self, given: Mapping[str, Any]) -> Arrays:
        if self.graph._rebound:
            raise _rebound()
        params = {}
        for name in self.inputs:
            if name in self._params:
                params[name] = float(given[name])
                continue
            array, value = self._arrays[name], np.asarray(given[name])
            if isinstance(array, np.ndarray) and _is(array, value):
                continue  # it lies there already
            array[...] = value
        if params:
            self.graph.update(params)
        self.graph.launch()
        return {name: _values(self._arrays[name]) for name in self.outputs}

    def backward(self, given: Mapping[str, Any], cotangents: Mapping[str, Any], wanted: Sequence[str]) -> Arrays:
        seeds = {
            name: np.zeros(self._arrays[name].shape) if cotangents.get(name) is None else np.asarray(cotangents[name])
            for name in filter(self.has_derivative, self.outputs)
        }
        if not seeds:  # nothing that was returned depends on anything smoothly
            return {name: np.zeros(np.shape(given[name])) for name in wanted}
        found = reverse(self._record(), seeds, wrt=list(wanted), vjps=self._vjps, checkpoint=self._checkpoint)
        return {name: found[name].reshape(np.shape(given[name])) for name in wanted}

    def shapes(self, given: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
        return {name: (tuple(self._arrays[name].shape), np.dtype(self._arrays[name].dtype)) for name in self.outputs}

    def is_real(self, name: str) -> bool:
        """Whether there can be a derivative by this input."""
        return name in self._params or self._arrays[name].dtype in (np.float64, np.float32)


def function_of(
    of: Any,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    vjps: Mapping[str, VjpFunction] | None,
    checkpoint: int | None,
) -> KernelFunction | GraphFunction:
    """The function that a face is asked for."""
    if isinstance(of, Kernel):
        if inputs is not None or outputs is not None or vjps is not None or checkpoint is not None:
            raise refusal(
                "BAD_BINDING",
                "function: a kernel's inputs and outputs are its own; inputs=, outputs=, vjps= and "
                "checkpoint= are for graphs",
            )
        return KernelFunction(of)
    if isinstance(of, graphs.Graph):
        if not inputs or not outputs:
            raise refusal(
                "BAD_BINDING", "function: a graph needs inputs= and outputs=, names of planes and Params of its nodes"
            )
        return GraphFunction(of, inputs, outputs, vjps, checkpoint)
    raise refusal("WRONG_TYPE", f"function: expected a kernel or a recorded graph, found {type(of).__name__}")


def _wrong(function: str, name: str, reason: str, expected: str, found: str) -> Exception:
    return refusal(reason, f"{function}: input '{name}': expected {expected}, found {found}")


def _rebound() -> Exception:
    return refusal(
        "GRAPH_STATE",
        "function: the graph has been bound to other arrays than it was built with, and a function stores to those of "
        "its nodes; build a graph with the arrays that you want",
    )


def _holds(given: Sequence[Any], array: Any) -> bool:
    """Whether one of the given arrays is this one, or has all of its bytes."""
    if not isinstance(array, np.ndarray):
        return any(one is array for one in given)
    low, high = _bounds(array)
    bounds = [_bounds(one) for one in given if isinstance(one, np.ndarray) and one.flags.c_contiguous]
    return any(one is array for one in given) or any(first <= low and high <= last for first, last in bounds)


def _bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses between which its elements lie."""
    low = high = int(array.__array_interface__["data"][0])
    for extent, stride in zip(array.shape, array.strides):
        low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
    return low, high + array.itemsize


def _contiguous(array: Any, dtype: Any) -> Any:
    return np.ascontiguousarray(array, dtype)


def _values(array: Any) -> Any:
    return array.numpy() if isinstance(array, Plane) else np.array(array)


def _is(array: Any, value: Any) -> bool:
    one, other = array.__array_interface__, value.__array_interface__
    return (one["data"][0], array.strides, array.dtype) == (other["data"][0], value.strides, value.dtype)


def _texts(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    for name in names:
        if not isinstance(name, str):
            raise refusal("WRONG_TYPE", f"function: {what}: expected names, found {name!r}")
    return tuple(names)


def _planes_of(graph: graphs.Graph) -> tuple[dict[str, list[Any]], set[str]]:
    """Arrays by name and by "node.name", and the names of Params."""
    planes: dict[str, list[Any]] = {}
    params: set[str] = set()

    def add(label: str, name: str, array: Any) -> None:
        planes.setdefault(name, []).append(array)
        planes.setdefault(f"{label}.{name}", []).append(array)

    def walk(item: Any, label: str) -> None:
        if isinstance(item, BoundPlan):
            own = label or item.kernel.name
            for name, role, scalar, _ in item.rows:
                if role == "param" and scalar in ("f64", "f32"):
                    params.update((name, f"{own}.{name}"))
                elif name in item.planes:
                    add(own, name, item.planes[name])
        elif isinstance(item, Conditional):
            cells = {"guard": item.guard.count, "baseline": item.guard.baseline, "iterations": item._counter}
            for name, cell in cells.items():
                if cell is not None:
                    add(label or item.kind, name, cell)
            for part in item.body:
                walk(part, "")
        elif isinstance(item, Group):
            for branch in item.branches:
                for part, name in branch:
                    walk(part, name)
        elif isinstance(item, Node):
            own = label or item.name or item.kind
            for part in item._parts:
                walk(part, own)
            for name, array in item._planes.items():
                add(own, name, array)

    for added in graph._adds:
        for label, item in added.labelled():
            walk(item, label)
    return planes, params
