"""Kernels over labelled arrays: dimensions and coordinates of ``xarray.DataArray`` go in and come out.

A kernel that is called with a DataArray does this by itself. Samples are the dimensions of its Scalars (or those behind
the first of a Vector's), any number of them; they are one axis to the kernel, which takes the memory as it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

import numpy as np

from eagle import roles
from eagle.errors import refusal
from eagle.session import Session, default_session

try:
    import xarray
except ImportError as missing:
    raise refusal(
        "MISSING_PACKAGE", "eagle.interop.xarray: xarray is not installed; pip install eagled[interop]"
    ) from missing

if TYPE_CHECKING:
    from eagle._kernel import Kernel


class _Labels(NamedTuple):
    """Dimensions of the samples: their names, extents and coordinates."""

    of: str  # the argument that they came from
    dims: tuple[Any, ...]
    shape: tuple[int, ...]
    coords: dict[Any, Any]
    name: Any


def share(array: Any, session: Session | None = None) -> Any:
    """The DataArray with its values in a session's memory: copied once, where they are not there; labels stay."""
    _checked("share", array)
    home = session or default_session()
    return array.copy(data=home.asarray(np.ascontiguousarray(array.data)).reshape(array.shape))


def call(kernel: Kernel, given: Mapping[str, Any], session: Session | None = None, scalar_type: Any = None) -> Any:
    """The kernel over these arguments: outputs are DataArrays with the labels of the samples, and Mutables are changed
    in place. Nothing is aligned: arguments of other labels are refused by name, with the cure.
    """
    from eagle.plan import Plan

    labels = _labels_of(kernel, given)
    arrays = {name: _plain(kernel, name, value, labels) for name, value in given.items()}
    plan = Plan(kernel, scalar_type)
    bound = plan.bind(session=session, **arrays).launch()
    components = _component_dims(kernel, given, labels)
    return bound.returned(lambda name, plane: _labelled(name, plane, labels, components, bound))


def _labels_of(kernel: Kernel, given: Mapping[str, Any]) -> _Labels:
    """Those of the first Scalar, else of the first Vector; all others have to have the same."""
    found: _Labels | None = None
    rows = [(name, value) for name, value in given.items() if isinstance(value, xarray.DataArray)]
    rows = [row for row in rows if row[0] in kernel.arguments and _per_sample(kernel.role(row[0]))]
    if not rows:
        raise refusal(
            "BAD_BINDING",
            f"{kernel.name}: no DataArray is given for an argument of samples; their labels are what results get",
        )
    for name, value in sorted(rows, key=lambda row: bool(kernel.role(row[0]).extents)):
        skipped = 1 if kernel.role(name).extents else 0
        dims = tuple(value.dims[skipped:])
        coords = {key: coord for key, coord in value.coords.items() if set(coord.dims) <= set(dims)}
        mine = _Labels(name, dims, tuple(value.shape[skipped:]), coords, value.name)
        if found is None:
            found = mine
            continue
        if mine.dims != found.dims or mine.shape != found.shape:
            raise refusal(
                "WRONG_SHAPE",
                f"{kernel.name}: argument '{name}' has samples along {_shown(mine)}, and '{found.of}' along "
                f"{_shown(found)}; expected the same in the same order, components first: {name}.transpose"
                f"({', '.join(map(repr, [*value.dims[:skipped], *found.dims]))}), or xarray.broadcast",
            )
        for dim in dims:
            if dim in mine.coords and dim in found.coords and not mine.coords[dim].equals(found.coords[dim]):
                raise refusal(
                    "BAD_VALUE",
                    f"{kernel.name}: '{name}' and '{found.of}' have other coordinates along '{dim}'; align them first: "
                    f"xarray.align({found.of}, {name})",
                )
        for key, coord in mine.coords.items():
            found.coords.setdefault(key, coord)
    assert found is not None
    return found


def _plain(kernel: Kernel, name: str, value: Any, labels: _Labels) -> Any:
    """The memory of an argument with its samples along one axis."""
    if not isinstance(value, xarray.DataArray):
        return value
    data = value.data
    if not isinstance(data, np.ndarray):
        raise refusal(
            "WRONG_TYPE",
            f"{kernel.name}: argument '{name}' holds a {type(data).__module__.split('.')[0]}.{type(data).__name__}; "
            f"load it first: {name}.load()",
        )
    if name not in kernel.arguments or not _per_sample(kernel.role(name)):
        return data
    kept = data.shape[: data.ndim - len(labels.dims)]
    flat = data.reshape((*kept, -1))
    if flat.size and not np.may_share_memory(flat, data):
        raise refusal(
            "COPY_BOUND_PLANE",
            f"{kernel.name}: argument '{name}' of dimensions {tuple(value.dims)} and strides {data.strides} would have "
            f"to be copied; pass {name}.copy(data=np.ascontiguousarray({name}.data))",
        )
    return flat


def _component_dims(kernel: Kernel, given: Mapping[str, Any], labels: _Labels) -> dict[int, tuple[Any, Any]]:
    """What the components of vectors are called, by their number: as the first such argument has it."""
    found: dict[int, tuple[Any, Any]] = {}
    for value in given.values():
        if isinstance(value, xarray.DataArray) and value.dims[1:] == labels.dims:
            dim = value.dims[0]
            found.setdefault(value.shape[0], (dim, value.coords.get(dim)))
    return found


def _labelled(name: str, plane: Any, labels: _Labels, components: dict[int, tuple[Any, Any]], bound: Any) -> Any:
    row = next(row for row in bound.rows if row[0] == name)
    if row[1] != "output":
        return plane
    coords = dict(labels.coords)
    if not row[3]:
        return xarray.DataArray(plane.reshape(labels.shape), coords=coords, dims=labels.dims, name=name)
    dim, coord = components.get(plane.shape[0], (f"{name}_component", None))
    if coord is not None:
        coords[dim] = coord
    return xarray.DataArray(
        plane.reshape((plane.shape[0], *labels.shape)), coords=coords, dims=(dim, *labels.dims), name=name
    )


def _per_sample(role: roles.Role) -> bool:
    return role.kind in ("read", "mutable", "terminated")


def _shown(labels: _Labels) -> str:
    return ", ".join(f"{dim}={extent}" for dim, extent in zip(labels.dims, labels.shape)) or "no dimension"


def _checked(method: str, array: Any) -> None:
    if not isinstance(array, xarray.DataArray):
        raise refusal("WRONG_TYPE", f"interop.xarray.{method}: expected a DataArray, found {type(array).__name__}")
