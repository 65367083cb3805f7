"""Roles: what an annotation of a kernel argument says about it.

======================  ==============  =========================  =====================================
annotation              plane           dtype                      meaning
======================  ==============  =========================  =====================================
``Scalar``              ``(N,)``        float64 or float32         read: one real per sample
``Vector[w]``           ``(w, N)``      float64 or float32         read: ``w`` reals per sample
``Quat``                ``(4, N)``      float64 or float32         read: w, x, y, z
``Matrix[R, C]``        ``(R*C, N)``    float64 or float32         read: row-major
``Index``               ``(N,)``        int64                      read: an integer per sample
``Param``               none            the planes' float type     one real for the whole launch
``Param[int]``          none            int64                      one integer for the whole launch
``Mutable[T]``          as ``T``        as ``T``                   state: read and changed
``Terminated``          ``(N,)``        bool                       the mask: a set sample is skipped
``Table[T]``            own length      as ``T``                   look-up, shared by all samples: ``t.at(i)``
``Table["a":n, "b":m]`` ``(n, m)``      float64 or float32         look-up over named axes: ``t.at(a=i, b=j)``
``Accum[T]``            own length      as ``T``                   added to by all: ``h.add(v, at=i)``
``Reduce("sum")``       ``(1,)``        as the values              what the samples' values make together
======================  ==============  =========================  =====================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eagle._data_classes import data_class

__all__ = [
    "Accum",
    "Index",
    "Matrix",
    "Mutable",
    "Param",
    "Quat",
    "Reduce",
    "Role",
    "Scalar",
    "Table",
    "Terminated",
    "Vector",
]


@data_class(frozen=True)
class Role:
    """What one argument is: how it is used, its element type and its extents."""

    kind: str  # "read", "mutable", "param", "terminated", "table", "accum" or "reduce"
    scalar: str  # "real" (float64 or float32, as the planes are), "i64" or "bool"
    extents: tuple[int, ...] = ()
    name: str = ""  # as the user writes it
    axes: tuple[tuple[str, int], ...] = ()  # of a table or Accum; none: one axis, as long as its array
    op: str = ""  # of a Reduce

    def __repr__(self) -> str:
        return self.name


class _Sized:
    """``Vector`` and ``Matrix``: roles once their extents are given."""

    def __init__(self, name: str, extents: int) -> None:
        self._name = name
        self._extents = extents

    def __getitem__(self, item: Any) -> Role:
        extents = item if isinstance(item, tuple) else (item,)
        whole = all(isinstance(extent, int) and not isinstance(extent, bool) for extent in extents)
        if len(extents) != self._extents or not whole or min(extents) < 1:
            example = ", ".join("RC"[: self._extents]) if self._extents == 2 else "3"
            raise TypeError(
                f"{self._name}[{item!r}]: expected {self._extents} whole number(s) of at least 1, "
                f"as in {self._name}[{example}]"
            )
        return Role("read", "real", extents, f"{self._name}[{', '.join(map(str, extents))}]")

    def __repr__(self) -> str:
        return self._name


class _Mutable:
    """``Mutable[T]``: state of role ``T``."""

    def __getitem__(self, role: Any) -> Role:
        if not isinstance(role, Role) or role.kind != "read":
            raise TypeError(f"Mutable[{role!r}]: expected Scalar, Vector[w], Matrix[R, C], Quat or Index inside")
        return Role("mutable", role.scalar, role.extents, f"Mutable[{role.name}]")

    def __repr__(self) -> str:
        return "Mutable"


class _Indexed:
    """``Table[T]``, ``Table["a":n, "b":m]`` (of Scalar) and ``Table[T, "a":n]``; ``Accum`` likewise."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, item: Any) -> Role:
        items = list(item) if isinstance(item, tuple) else [item]
        element: Any = items.pop(0) if isinstance(items[0], Role) else Scalar
        if element.kind != "read" or not all(_is_axis(axis) for axis in items):
            raise TypeError(
                f"{self._name}[{item!r}]: expected the role of an element, named axes, or both, as in "
                f'{self._name}[Scalar], {self._name}["row":4, "column":8] or {self._name}[Vector[3], "row":4]'
            )
        axes = tuple((axis.start, int(axis.stop)) for axis in items)
        if len({name for name, _ in axes}) != len(axes):
            raise TypeError(f"{self._name}[{item!r}]: two axes have the same name")
        shown = ", ".join([element.name] * (element is not Scalar or not axes) + [f'"{n}":{m}' for n, m in axes])
        return Role(self._name.lower(), element.scalar, element.extents, f"{self._name}[{shown}]", axes)

    def __repr__(self) -> str:
        return self._name


def _is_axis(axis: Any) -> bool:
    if not isinstance(axis, slice) or not isinstance(axis.start, str) or axis.step is not None:
        return False
    whole = isinstance(axis.stop, int) and not isinstance(axis.stop, bool)
    return axis.start.isidentifier() and whole and 1 <= axis.stop < 2**31


class _Reduce:
    """``Reduce("sum")`` and its like; ``Reduce("sum", Index)`` of integers."""

    def __call__(self, op: Any, of: Any = None) -> Role:
        if op not in ("sum", "max", "min", "all", "any"):
            raise TypeError(f'Reduce({op!r}): expected "sum", "max", "min", "all" or "any"')
        if op in ("all", "any"):
            if of is not None:
                raise TypeError(f"Reduce({op!r}, {of!r}): all and any are of conditions; leave out the second argument")
            return Role("reduce", "bool", (), f'Reduce("{op}")', op=op)
        element: Any = Scalar if of is None else of
        if element is not Scalar and element is not Index:
            raise TypeError(f"Reduce({op!r}, {of!r}): expected Scalar or Index")
        shown = "" if element is Scalar else ", Index"
        return Role("reduce", "real" if element is Scalar else "i64", (), f'Reduce("{op}"{shown})', op=op)

    def __repr__(self) -> str:
        return "Reduce"


class _Param(Role):
    """``Param``: a role by itself (a real), and ``Param[int]``."""

    def __getitem__(self, number: Any) -> Role:
        if number is float:
            return self
        if number is int:
            return Role("param", "i64", (), "Param[int]")
        raise TypeError(f"Param[{number!r}]: expected Param, Param[float] or Param[int]")


if TYPE_CHECKING:
    from typing import Annotated, TypeVar

    from typing_extensions import TypeAlias

    _T = TypeVar("_T")
    # What a type checker sees inside a kernel: one sample's numbers.
    Scalar: TypeAlias = float
    Quat: TypeAlias = Any
    Vector: TypeAlias = Any
    Matrix: TypeAlias = Any
    Index: TypeAlias = int
    Table: TypeAlias = Any
    Accum: TypeAlias = Any
    Terminated: TypeAlias = bool
    Mutable = Annotated[_T, "state"]
    Param: TypeAlias = float

    def Reduce(op: str, of: Any = None) -> Any:
        """What the samples' values make together."""
else:
    Scalar = Role("read", "real", (), "Scalar")
    Quat = Role("read", "real", (4,), "Quat")
    Vector = _Sized("Vector", 1)
    Matrix = _Sized("Matrix", 2)
    Index = Role("read", "i64", (), "Index")
    Terminated = Role("terminated", "bool", (), "Terminated")
    Table = _Indexed("Table")
    Accum = _Indexed("Accum")
    Reduce = _Reduce()
    Mutable = _Mutable()
    Param = _Param("param", "real", (), "Param")
