"""Arrays over memory that another library owns, which may give it up: known again at each launch."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Tuple, Union

import numpy as np

from eagle._data_classes import NamedTuple
from eagle.errors import refusal
from eagle.planes import Plane


class Source(NamedTuple):
    """Whose memory an array is, and where that was."""

    owner: Any
    address: int
    nbytes: int

    def moved(self) -> str | None:
        """What has become of the memory since, or None while the owner has it where it was."""
        pointer = pointer_of(self.owner)
        try:
            now = None if pointer is None else pointer()
        except RuntimeError as error:  # jax, of an array that was donated or deleted
            return f"and it is gone now ({str(error).splitlines()[0]})"
        if now is None or now == self.address:
            return None
        return f"and its owner has other memory now, at {now:#x}"


class Imported(np.ndarray[Any, Any]):
    """What :func:`eagle.interop.import_buffer` returns: a numpy array that remembers whose memory it is.

    Views of it do, too; results of arithmetic are arrays like any other.
    """

    _source: Source | None = None

    def __array_finalize__(self, of: Any) -> None:
        self._source = getattr(of, "_source", None)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], owner: Any) -> Imported:
        """The array as one that remembers ``owner``, where that can be asked for its address."""
        made = array.view(cls)
        pointer = pointer_of(owner)
        if pointer is not None and array.size:
            address = pointer()
            if address is not None:
                made._source = Source(owner, address, array.nbytes)
        return made

    def source(self) -> Source | None:
        """Whose memory it is; None for one that is nobody's but numpy's."""
        known = self._source
        address = int(self.__array_interface__["data"][0])
        inside = known is not None and known.address <= address < known.address + max(known.nbytes, 1)
        return known if inside else None


def pointer_of(owner: Any) -> Callable[[], int | None] | None:
    """How to ask an object where its memory is; None where it cannot move."""
    if isinstance(owner, np.ndarray):
        return lambda: int(owner.__array_interface__["data"][0])
    for name in ("data_ptr", "unsafe_buffer_pointer"):  # torch, jax
        found = getattr(owner, name, None)
        if callable(found):
            return lambda: int(found())
    for name in ("__array_interface__", "__cuda_array_interface__"):
        if hasattr(type(owner), name) or hasattr(owner, name):
            return lambda: int(getattr(owner, name)["data"][0] or 0)
    return None


# (label, plane, array) of a node whose memory may go.
Watched = Tuple[str, str, Union[Imported, Plane]]


def watched_of(label: str, planes: Iterable[tuple[str, Any]]) -> list[Watched]:
    """Those among the arrays that remember somebody."""
    return [(label, name, array) for name, array in planes if isinstance(array, (Imported, Plane)) and array.source()]


def watched_after(old: Iterable[Watched], rows: Iterable[tuple[str, int | None, str, Any]]) -> list[Watched]:
    """What is left of them, and new, when planes are bound again: rows are those of a rebind."""
    kept = list(old)
    for label, leaf, name, array in rows:
        node, _, plane = ("", "", name) if label or leaf is not None else name.rpartition(".")
        where = label or node
        kept = [one for one in kept if one[1] != plane or (where and one[0] != where)]
        kept += watched_of(where or "kernel", [(plane, array)])
    return kept


def refuse_moved(method: str, watched: Iterable[Watched]) -> None:
    """GRAPH_STATE, where the owner of an array has other memory than it had."""
    for label, plane, array in watched:
        source = array.source()
        what = source.moved() if source is not None else None
        if source is None or what is None:
            continue
        kind = f"{type(source.owner).__module__.split('.')[0]}.{type(source.owner).__name__}"
        raise refusal(
            "GRAPH_STATE",
            f"{method}: node '{label}': plane '{plane}' is bound to memory that a {kind} had at {source.address:#x} "
            f"when it was imported, {what}: the launch would read old values. Change the owner in place (for a torch "
            "parameter what an optimizer does, or param.data.copy_(values)), or bind "
            "eagle.interop.import_buffer(owner) anew",
        )
