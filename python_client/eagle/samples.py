"""How samples lie in arguments: square arrays, and one sample alone."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from eagle.errors import refusal
from eagle.planes import Plane
from eagle.session import Array, Session


class Oriented:
    """An array with components first, said by :func:`samples_first` or :func:`samples_last`."""

    def __init__(self, array: Array, components_first: Array) -> None:
        self.array = array
        self._components_first = components_first

    def plane(self, extents: Sequence[int]) -> Array:
        """The array as the plane of an argument of these extents, in the form that is never ambiguous."""
        view = self._components_first
        rows, columns = (*extents, 1)[:2] if extents else (1, 1)
        if not extents or view.shape[0] != rows * columns:
            return self.array
        return view.reshape(rows, columns, view.shape[1])  # splits an axis, which copies nothing

    def __repr__(self) -> str:
        return f"<eagle array of {self._components_first.shape[1]} samples, {self.array!r}>"


def samples_first(array: Array) -> Oriented:
    """A square array whose rows are samples, for an argument of as many components: ``array[sample, component]``.

    >>> import eagle
    >>> @eagle.kernel
    ... def first(v: eagle.Vector[2]) -> eagle.Scalar:
    ...     return v[0]
    >>> square = eagle.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> first(eagle.samples_last(square))
    array([1., 2.])
    >>> first(eagle.samples_first(square.T))  # its components lie together, so that this is the same
    array([1., 2.])
    """
    return Oriented(array, _two_dimensional("samples_first", array).T)


def samples_last(array: Array) -> Oriented:
    """A square array whose columns are samples, as all planes have them: ``array[component, sample]``.

    >>> import eagle
    >>> eagle.samples_last(eagle.zeros((2, 2)))
    <eagle array of 2 samples, array([[0., 0.],
           [0., 0.]])>
    """
    return Oriented(array, _two_dimensional("samples_last", array))


def _two_dimensional(name: str, array: Any) -> Any:
    if not isinstance(array, (np.ndarray, Plane)):
        raise refusal("WRONG_TYPE", f"{name}: expected a numpy array, found {type(array).__name__}")
    if array.ndim != 2:
        raise refusal("WRONG_SHAPE", f"{name}: expected two axes, found shape {array.shape}")
    return array


# ---- one sample

# (name, role, scalar, extents) of an argument, as the core tells them.
Row = tuple[str, str, str, tuple[int, ...]]


def is_head(value: Any, extents: tuple[int, ...]) -> bool:
    """Whether this is the value of one sample: a number or a 0-d array, (w,) or (R, C)."""
    if isinstance(value, (bool, int, float, np.generic)):
        return not extents
    return isinstance(value, (np.ndarray, Plane)) and value.shape == extents


def are_heads(rows: Sequence[Row], given: dict[str, Any]) -> bool:
    """Whether all arguments that have one value for each sample are those of one sample."""
    per_sample = [(given[name], extents) for name, role, _, extents in rows if name in given and is_per_sample(role)]
    return bool(per_sample) and all(is_head(value, tuple(extents)) for value, extents in per_sample)


class OneSample:
    """The arguments of one sample as a batch of one, and the way back."""

    def __init__(self, kernel: str, rows: Sequence[Row], given: dict[str, Any], session: Session) -> None:
        self._extents = {name: tuple(extents) for name, _, _, extents in rows}
        self._written: dict[str, Any] = {}
        self.arguments = dict(given)
        for name, role, scalar, extents in rows:
            if name not in given or not is_per_sample(role):
                continue
            value = given[name]
            if role != "read":
                self._keep(kernel, name, role, value)
            # A Python number has the type that is asked for; an array keeps its own, and is refused if need be.
            dtype = value.dtype if isinstance(value, (np.ndarray, np.generic, Plane)) else _number_type(value, scalar)
            components = int(np.prod(extents)) if extents else 1
            shape = (components, 1) if extents else (1,)
            self.arguments[name] = session.asarray(np.asarray(value, dtype).reshape(shape))

    def _keep(self, kernel: str, name: str, role: str, value: Any) -> None:
        if not isinstance(value, (np.ndarray, Plane)):
            raise refusal(
                "WRONG_TYPE",
                f"bind: kernel '{kernel}': argument '{name}' is changed by the kernel, which a number cannot be; "
                f"pass np.array({value!r}), an array without axes",
            )
        if value.read_only if isinstance(value, Plane) else not value.flags.writeable:
            raise refusal("READ_ONLY_ARRAY", f"bind: kernel '{kernel}': argument '{name}' is a read-only array")
        self._written[name] = value

    def give_back(self, planes: dict[str, Array]) -> None:
        """Stores what the kernel changed in the caller's own arrays."""
        for name, value in self._written.items():
            value[...] = planes[name].reshape(value.shape)

    def head(self, name: str, plane: Array) -> Any:
        """The output of one sample: the caller's own array, or a fresh one."""
        known = self._written.get(name)
        return plane.reshape(self._extents[name]) if known is None else known


def is_per_sample(role: str) -> bool:
    """Whether a plane of this role has one value for each sample."""
    return role not in ("param", "table", "accum", "reduce")


def _number_type(value: Any, scalar: str) -> Any:
    if isinstance(value, bool):
        return np.bool_
    if isinstance(value, int):
        return np.int64 if scalar == "i64" else np.float32 if scalar == "f32" else np.float64
    return np.float32 if scalar == "f32" else np.float64
