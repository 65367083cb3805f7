"""Kernels and runs over labelled arrays: dimensions and coordinates of ``xarray.DataArray`` go in and come out.

A kernel that is called with a DataArray does this by itself, and so do ``eagle.simulate`` and its like. Samples are the
dimensions of its Scalars (or those behind the first of a Vector's), any number of them; they are one axis to the
kernel, which takes the memory as it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

import numpy as np

from eagle import roles
from eagle.errors import refusal
from eagle.session import Session, check_session, default_session

try:
    import xarray
except ImportError as missing:
    raise refusal(
        "MISSING_PACKAGE", "eagle.interop.xarray: xarray is not installed; pip install eagled[interop]"
    ) from missing

if TYPE_CHECKING:
    from eagle._kernel import Kernel

#: Of the rows of what a run has recorded.
RECORD_DIM = "record_step"


class _Samples(NamedTuple):
    """Dimensions of the samples: their names, extents and coordinates."""

    of: str  # the argument that they came from
    dims: tuple[Any, ...]
    shape: tuple[int, ...]
    coords: dict[Any, Any]


class _Own(NamedTuple):
    """What an argument was labelled with."""

    dims: tuple[Any, ...]
    shape: tuple[int, ...]
    coords: dict[Any, Any]
    name: Any
    attrs: dict[Any, Any]


class Labels:
    """The labels of the arguments of one call or run, for its planes: these have their samples along one axis.

    ``where`` begins the text of a refusal, ``roles`` are those of the arguments. Nothing is aligned: arguments of other
    labels are refused by name, with the cure.
    """

    #: What planes are that were not among the arguments: "sample", or something else that has no labels.
    kinds: Mapping[str, str] = {}

    def __init__(self, where: str, roles: Mapping[str, roles.Role], given: Mapping[str, Any]) -> None:
        self._where, self._roles = where, roles
        labelled = {name: value for name, value in given.items() if isinstance(value, xarray.DataArray)}
        self._samples = _samples_of(where, roles, labelled)
        self._own = {
            name: _Own(tuple(one.dims), tuple(one.shape), dict(one.coords), one.name, dict(one.attrs))
            for name, one in labelled.items()
        }
        # What the components of vectors are called, by their number: as the first such argument has it.
        self._components: dict[int, tuple[Any, Any]] = {}
        for value in labelled.values():
            if value.dims[1:] == self._samples.dims:
                dim = value.dims[0]
                self._components.setdefault(value.shape[0], (dim, value.coords.get(dim)))

    def plain(self, name: str, value: Any) -> Any:
        """The memory of an argument with its samples along one axis."""
        if not isinstance(value, xarray.DataArray):
            return value
        data = value.data
        if not isinstance(data, np.ndarray):
            held = f"{type(data).__module__.split('.')[0]}.{type(data).__name__}"
            raise refusal(
                "WRONG_TYPE", f"{self._where}: argument '{name}' holds a {held}; load it first: {name}.load()"
            )
        axes = len(self._samples.dims)
        if name in self._roles:
            if not _per_sample(self._roles[name]):
                return data
        elif value.dims[value.ndim - axes :] != self._samples.dims:
            return data  # an output that is no sample's, or nobody's argument
        flat = data.reshape((*data.shape[: data.ndim - axes], -1))
        if flat.size and not np.may_share_memory(flat, data):
            raise refusal(
                "COPY_BOUND_PLANE",
                f"{self._where}: argument '{name}' of dimensions {tuple(value.dims)} and strides {data.strides} would "
                f"have to be copied; pass {name}.copy(data=np.ascontiguousarray({name}.data))",
            )
        return flat

    def plane(self, name: str, array: Any) -> Any:
        """A plane as its argument was labelled, or with the labels of the samples."""
        own = self._own.get(name)
        if own is not None:
            made = xarray.DataArray(array.reshape(own.shape), coords=own.coords, dims=own.dims, name=own.name)
            made.attrs.update(own.attrs)
            return made
        return self.of_samples(name, array) if self.kinds.get(name) == "sample" else array

    def of_samples(self, name: str, array: Any) -> Any:
        """An array whose last axis is the samples; one before it is the components of a vector."""
        return self._labelled(name, array, (), {})

    def of_records(self, name: str, rows: Any, steps: Any) -> Any:
        """The rows that a run has recorded of a plane, taken after these steps."""
        return self._labelled(name, rows, (RECORD_DIM,), {RECORD_DIM: steps[: len(rows)]})

    def _labelled(self, name: str, array: Any, leading: tuple[Any, ...], coords: dict[Any, Any]) -> Any:
        samples = self._samples
        coords = {**samples.coords, **coords}
        extents = array.shape[: len(leading)]
        if array.ndim > len(leading) + 1:
            components = array.shape[len(leading)]
            dim, coord = self._components.get(components, (f"{name}_component", None))
            leading, extents = (*leading, dim), (*extents, components)
            if coord is not None:
                coords[dim] = coord
        return xarray.DataArray(
            array.reshape((*extents, *samples.shape)), coords=coords, dims=(*leading, *samples.dims), name=name
        )


def share(array: Any, session: Session | None = None) -> Any:
    """The DataArray with its values in a session's memory: copied once, where they are not there; labels stay."""
    _checked("share", array)
    check_session("share", session)
    home = session or default_session()
    return array.copy(data=home.asarray(np.ascontiguousarray(array.data)).reshape(array.shape))


def call(kernel: Kernel, given: Mapping[str, Any], session: Session | None = None, scalar_type: Any = None) -> Any:
    """The kernel over these arguments: outputs are DataArrays with the labels of the samples, and Mutables are changed
    in place.
    """
    from eagle.plan import Plan

    labels = Labels(kernel.name, {name: kernel.role(name) for name in kernel.arguments}, given)
    arrays = {name: labels.plain(name, value) for name, value in given.items()}
    bound = Plan(kernel, scalar_type).bind(session=session, **arrays).launch()
    outputs = {row[0] for row in bound.rows if row[1] == "output"}
    return bound.returned(lambda name, plane: labels.of_samples(name, plane) if name in outputs else plane)


def _samples_of(where: str, roles: Mapping[str, roles.Role], labelled: Mapping[str, Any]) -> _Samples:
    """Those of the first Scalar, else of the first Vector; all others have to have the same."""
    found: _Samples | None = None
    rows = [row for row in labelled.items() if row[0] in roles and _per_sample(roles[row[0]])]
    if not rows:
        raise refusal(
            "BAD_BINDING",
            f"{where}: no DataArray is given for an argument of samples; their labels are what results get",
        )
    for name, value in sorted(rows, key=lambda row: bool(roles[row[0]].extents)):
        skipped = 1 if roles[name].extents else 0
        dims = tuple(value.dims[skipped:])
        coords = {key: coord for key, coord in value.coords.items() if set(coord.dims) <= set(dims)}
        mine = _Samples(name, dims, tuple(value.shape[skipped:]), coords)
        if found is None:
            found = mine
            continue
        if mine.dims != found.dims or mine.shape != found.shape:
            raise refusal(
                "WRONG_SHAPE",
                f"{where}: argument '{name}' has samples along {_shown(mine)}, and '{found.of}' along "
                f"{_shown(found)}; expected the same in the same order, components first: {name}.transpose"
                f"({', '.join(map(repr, [*value.dims[:skipped], *found.dims]))}), or xarray.broadcast",
            )
        for dim in dims:
            if dim in mine.coords and dim in found.coords and not mine.coords[dim].equals(found.coords[dim]):
                raise refusal(
                    "BAD_VALUE",
                    f"{where}: '{name}' and '{found.of}' have other coordinates along '{dim}'; align them first: "
                    f"xarray.align({found.of}, {name})",
                )
        for key, coord in mine.coords.items():
            found.coords.setdefault(key, coord)
    assert found is not None
    return found


def _per_sample(role: roles.Role) -> bool:
    return role.kind in ("read", "mutable", "terminated")


def _shown(labels: _Samples) -> str:
    return ", ".join(f"{dim}={extent}" for dim, extent in zip(labels.dims, labels.shape)) or "no dimension"


def _checked(method: str, array: Any) -> None:
    if not isinstance(array, xarray.DataArray):
        raise refusal("WRONG_TYPE", f"interop.xarray.{method}: expected a DataArray, found {type(array).__name__}")
