"""Plans: a kernel, and a kernel with everything it runs over.

``eagle.plan`` is this module and a function: ``eagle.plan(kernel)`` makes a :class:`Plan`.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Callable, Iterable, Literal

import numpy as np

from eagle import _core
from eagle._addresses import param_number
from eagle._data_classes import NamedTuple
from eagle._derivative import Derivative
from eagle._imported import refuse_moved, watched_of
from eagle._kernel import Kernel
from eagle._scratch import Scratch
from eagle._shown import pairs_html, pairs_text, put_right_rows, seconds_text
from eagle.errors import refusal
from eagle.planes import Plane, device_of
from eagle.samples import OneSample, Oriented, are_heads, is_per_sample
from eagle.session import Array, Host, Session, check_session, default_session, session_of

_REALS = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}


class LaunchReport(NamedTuple):
    """What a launch says about itself, as told by the process that computed.

    ``clamped`` counts the indices that were outside of their table and took the nearest element,
    ``zero_divisions`` the integer divisions by zero, which give 0, and ``dropped`` the additions whose index was
    outside of their accumulator.
    """

    host: Host
    launches: int
    threads: int
    wall_s: float
    clamped: int
    zero_divisions: int
    dropped: int

    @classmethod
    def of(cls, found: _core.LaunchReport) -> LaunchReport:
        """The report as the core tells it."""
        return cls(
            Host(found.host.pid, found.host.host_name),
            found.launches,
            found.threads,
            found.wall_s,
            found.clamped,
            found.zero_divisions,
            found.dropped,
        )

    def _rows(self) -> dict[str, Any]:
        rows = {
            "launches": f"{self.launches:,}",
            "time": f"{seconds_text(self.wall_s)} on {self.threads} threads",
            "host": f"pid {self.host.pid} of {self.host.name}",
        }
        rows.update(put_right_rows(self.clamped, self.dropped, self.zero_divisions))
        return rows

    def __str__(self) -> str:
        return pairs_text("report of a launch", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("report of a launch", self._rows())


class Plan:
    """A kernel that is ready to be bound: ``eagle.plan(kernel)``.

    ``scalar_type`` ("float64" or "float32", any spelling that numpy knows) is the type of the kernel's reals.
    None lets the planes decide; planes of both are refused, both named.

    >>> import eagle
    >>> @eagle.kernel
    ... def affine(x: eagle.Scalar, a: eagle.Param, b: eagle.Param) -> eagle.Scalar:
    ...     y = a * x + b
    ...     return y
    >>> bound = eagle.plan(affine).bind(x=eagle.asarray([0.0, 1.0]), a=2.0, b=1.0)
    >>> bound.launch().planes["y"]
    array([1., 3.])
    """

    def __init__(self, kernel: Kernel, scalar_type: Any = None) -> None:
        if not isinstance(kernel, Kernel):
            raise refusal(
                "WRONG_TYPE",
                f"eagle.plan: expected a kernel, found {type(kernel).__name__}; decorate the function with "
                "@eagle.kernel",
            )
        self.kernel = kernel
        self.scalar_type = None if scalar_type is None else _real_type(scalar_type)

    def bind(self, *, session: Session | None = None, **arguments: Any) -> BoundPlan:
        """The kernel over these arrays and numbers, each argument once, by name.

        Arrays are (N,) for Scalar, Index and Terminated, (w, N) for vectors; N is the same for all. Tables have a
        length of their own. Outputs that are not given are made, on the GPU where the other arrays lie. Nothing runs.
        Raises EagleError (a TypeError for types and for missing or extra arguments, a ValueError for values) that
        names kernel, argument, expected, found and the cure.
        """
        return BoundPlan(self, arguments, session)

    def outputs(self) -> tuple[str, ...]:
        """Names of what the kernel returns."""
        return self.kernel.translation(self.scalar_type or "f64").outputs

    def call(self, session: Session | None, arguments: dict[str, Any]) -> Any:
        """Binds, runs and returns the outputs; values of one sample run as a batch of one."""
        rows = self.kernel.translation(_choose_real(self, arguments)).kernel.arguments
        if not are_heads(rows, arguments):
            return self.bind(session=session, **arguments).launch().returned()
        check_session(f"kernel '{self.kernel.name}'", session)
        home = session or session_of(arguments.values()) or default_session()
        one = OneSample(self.kernel.name, rows, arguments, home)
        bound = self.bind(session=home, **one.arguments).launch()
        one.give_back(bound.planes)
        return bound.returned(one.head)

    def __repr__(self) -> str:
        return f"<eagle.plan {self.kernel.name}>"


class BoundPlan:
    """A kernel over arrays and numbers: a node for ``Graph.add``, or launched by itself.

    ``planes`` are the arrays by argument name, ``n`` is the number of samples, ``names`` are all argument
    names, outputs included.
    """

    _last_rebind = object()  # another one after each `rebind` of any plan: where it is the same, no plan has changed

    def __init__(self, plan: Plan, arguments: dict[str, Any], session: Session | None = None) -> None:
        self.kernel = plan.kernel
        self._plan = plan
        check_session(f"bind: kernel '{self.kernel.name}'", session)
        arrays = {**arguments, **_oriented(arguments)}.values()
        self.session = session or session_of(arrays) or _graph_session(arrays) or default_session()
        self._bind(arguments)

    def _bind(self, arguments: dict[str, Any]) -> None:
        """Takes these arguments whole, or raises and stays as it is."""
        translation = self.kernel.translation(_choose_real(self._plan, arguments))
        rows = translation.kernel.arguments
        names = tuple(row[0] for row in rows)
        given = {name: self._argument(rows, name, value) for name, value in arguments.items()}
        n = self._samples(translation, given)
        device = device_of(given.values())
        for name, role, scalar, extents in rows:
            if role in ("output", "reduce") and name not in given:
                samples = n if role == "output" else 1
                shape = (int(np.prod(extents)), samples) if extents else (samples,)
                given[name] = self.session.zeros(shape, _core_dtype(scalar), device, name)
                if role == "reduce":  # which a launch of no samples leaves as it is
                    given[name][...] = translation.kernel.neutral_element(name)
        node = _core.plan_node(translation.kernel, given)
        self.session._core.check_plan(node)
        planes: dict[str, Any] = {
            name: value for name, value in given.items() if isinstance(value, (np.ndarray, Plane, Scratch))
        }
        self.rows = rows  # (name, role, scalar, extents) of each argument, outputs included
        self.names: tuple[str, ...] = names
        self.n = n
        self._form, self._outputs = translation.form, translation.outputs
        self.planes: dict[str, Array] = {**planes, **_oriented(arguments)}
        self._arguments = {**given, **arguments}
        self._watched = watched_of(self.kernel.name, self.planes.items())
        self._node = node
        self._graph: _core.Graph | None = None
        self._report: LaunchReport | Literal["unread"] | None = None  # of the last launch, once it was asked for

    def rebind(self, **arguments: Any) -> BoundPlan:
        """Binds again: these arguments are new, the others stay. Returns itself.

        New arrays have the dtype and shape of the old ones. Constants that the kernel captured are read again. Graphs
        that are built hold what the plan was bound to then; see :meth:`eagle.Graph.rebind`. Raises as ``bind`` does,
        and then nothing has changed.

        >>> import eagle
        >>> @eagle.kernel
        ... def double(x: eagle.Scalar) -> eagle.Scalar:
        ...     y = 2.0 * x
        ...     return y
        >>> bound = eagle.plan(double).bind(x=eagle.asarray([1.0, 2.0]))
        >>> bound.rebind(x=eagle.asarray([5.0, 6.0])).launch().planes["y"]
        array([10., 12.])
        """
        for name, value in arguments.items():
            old = self.planes.get(name)
            if old is None or not isinstance(value, (np.ndarray, Plane, Scratch)):
                continue  # a number, or a name that `bind` refuses
            if value.dtype != old.dtype or value.shape != old.shape:
                raise refusal(
                    "WRONG_DTYPE" if value.dtype != old.dtype else "WRONG_SHAPE",
                    f"rebind: kernel '{self.kernel.name}': argument '{name}': expected an array like the one it has, "
                    f"{old.dtype} {old.shape}, found {value.dtype} {value.shape}; bind the plan anew for another kind",
                )
        self._bind({**self._arguments, **arguments})
        BoundPlan._last_rebind = object()
        return self

    @property
    def report(self) -> LaunchReport | None:
        """What the last ``launch`` said about itself; None before the first."""
        if self._report == "unread":
            self._report = None if self._graph is None else LaunchReport.of(self._graph.report())
        return self._report

    def launch(self) -> BoundPlan:
        """Runs the kernel once over all samples. Returns itself."""
        for name, plane in self.planes.items():
            if isinstance(plane, Scratch):
                raise refusal(
                    "SCRATCH_PLANE",
                    f"launch: kernel '{self.kernel.name}': argument '{name}' is the {plane._label()}, which has memory "
                    "in its graph only; add the plan to that graph",
                )
        if self._watched:
            refuse_moved("launch", self._watched)
        if self._graph is None:
            graph = _core.Graph(self.session._core, self.kernel.name, isinstance(self.kernel, Derivative))
            graph.add(self._node, self.kernel.name)
            graph.build()
            self._graph = graph
        self._graph.replay(1, {})
        self._report = "unread"
        return self

    def returned(self, shown: Callable[[str, Array], Any] = lambda name, plane: plane) -> Any:
        """The outputs as the kernel returns them: an array, a tuple, a dict by name, or None."""
        arrays = {name: shown(name, self.planes[name]) for name in self._outputs}
        if self._form == "dict":
            return arrays
        if self._form == "tuple":
            return tuple(arrays.values())
        return next(iter(arrays.values()), None)

    def __repr__(self) -> str:
        return f"<eagle.plan.BoundPlan {self.kernel.name}, n={self.n}, names={list(self.names)}>"

    def _argument(self, rows: list[Any], name: str, value: Any) -> Any:
        """A Param as a Python number, which the C++ layer rounds once; anything else as it is."""
        kind = next((row for row in rows if row[0] == name), None)
        where = f"bind: kernel '{self.kernel.name}': argument '{name}'"
        if kind is None:
            takes = ", ".join(f"'{row[0]}'" for row in rows)
            raise refusal("BAD_BINDING", f"{where}: there is no such argument; the kernel takes {takes}")
        if kind[1] != "param":
            return self._array(where, value, kind)
        number = param_number(where, value)
        if kind[2] == "i64" and isinstance(number, float) and not isinstance(value, (float, np.floating, np.ndarray)):
            raise refusal("BAD_VALUE", f"{where}: {value} is over the range of int64")
        return number

    def _array(self, where: str, value: Any, kind: Any) -> Any:
        if isinstance(value, Oriented):
            value = value.plane(kind[3])
        if isinstance(value, (np.ndarray, Plane)) and not _known(value.dtype) and not value.dtype.hasobject:
            expected = _core_dtype(kind[2]).name
            raise refusal(
                "WRONG_DTYPE",
                f"{where}: expected {expected}, found {value.dtype}; make one that is with session.asarray(array, "
                f"dtype=np.{expected})",
            )
        if isinstance(value, (bool, int, float, np.generic)):
            raise refusal(
                "WRONG_TYPE", f"{where}: expected an array, found the number {value!r}; only a Param takes one"
            )
        return value

    def _samples(self, translation: Any, given: dict[str, Any]) -> int:
        kernel = translation.kernel
        for name, role, _, _ in kernel.arguments:
            if is_per_sample(role) and name in given:
                return _core.samples_of(kernel, name, given[name])
        missing = [name for name, role, _, _ in kernel.arguments if is_per_sample(role) and role != "output"]
        raise refusal(
            "BAD_BINDING",
            f"bind: kernel '{kernel.name}': "
            + (
                f"argument '{missing[0]}' is missing"
                if missing
                else f"no array says how many samples there are; pass {translation.outputs[0]}=array"
            ),
        )


def _graph_session(arrays: Iterable[Any]) -> Session | None:
    """Where the graph runs whose scratch plane is the first among these."""
    return next((array._graph.session for array in arrays if isinstance(array, Scratch)), None)


def _oriented(arguments: dict[str, Any]) -> dict[str, Array]:
    return {name: value.array for name, value in arguments.items() if isinstance(value, Oriented)}


# Compared, and not by name: numpy makes the name of a type anew, each time that somebody asks for it.
_KNOWN = tuple(map(np.dtype, ("float64", "float32", "int64", "int32", "bool")))


def _known(dtype: np.dtype[Any]) -> bool:
    return dtype in _KNOWN


def _core_dtype(scalar: str) -> np.dtype[Any]:
    return np.dtype({"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "bool": "bool"}[scalar])


def _real_type(scalar_type: Any) -> str:
    spelled = (
        {"f64": "float64", "f32": "float32"}.get(scalar_type, scalar_type)
        if isinstance(scalar_type, str)
        else (scalar_type)
    )
    try:
        found = np.dtype(spelled)
    except TypeError:
        found = None
    for name, dtype in _REALS.items():
        if found is not None and found == dtype:
            return name
    raise refusal("BAD_VALUE", f"scalar_type {scalar_type!r}: expected 'float64', 'float32' or None")


def _reals_among(arrays: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Of each type of reals that some of these have, by its name here, the name of the first that has it."""
    found: dict[str, str] = {}
    for name, array in arrays:
        for real, dtype in _REALS.items():
            if array.dtype == dtype:
                found.setdefault(real, name)
    return found


def _choose_real(plan: Plan, arguments: dict[str, Any]) -> str:
    """The type of the kernel's reals: as asked for, else that of the float planes, else float64."""
    if plan.scalar_type is not None:
        return plan.scalar_type
    roles = {name: plan.kernel.role(name).kind for name in plan.kernel.arguments}
    found = _reals_among(
        (name, value)
        for name, value in {**arguments, **_oriented(arguments)}.items()
        if isinstance(value, (np.ndarray, np.generic, Plane, Scratch)) and roles.get(name) != "param"
    )
    if len(found) == 2:
        raise refusal(
            "WRONG_DTYPE",
            f"bind: kernel '{plan.kernel.name}': '{found['f64']}' is float64 and '{found['f32']}' is float32; "
            f"cast one of them, for example session.asarray({found['f32']}, dtype=np.float64)",
        )
    return next(iter(found), "f64")


class _CallableModule(types.ModuleType):
    """This module, callable."""

    def __call__(self, kernel: Kernel, scalar_type: Any = None) -> Plan:
        return Plan(kernel, scalar_type)


sys.modules[__name__].__class__ = _CallableModule
