"""Graphs as files: what :meth:`eagle.Graph.save` writes and :meth:`eagle.Graph.load` reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar, Union

import numpy as np

from eagle import _core
from eagle._data_classes import NamedTuple
from eagle.errors import refusal, text
from eagle.planes import Plane
from eagle.session import Array, Session, check_session, default_session, session_of

if TYPE_CHECKING:
    from eagle.graph import Graph

G = TypeVar("G", bound="Storable")
Source = Union[str, "os.PathLike[str]", bytes, "GraphFile"]


class SavedPlane(NamedTuple):
    """What takes the place of a plane of a file: an array of this dtype and shape, under one of these names.

    A plane that nodes see in several ways, none of them whole, takes any row-major array of ``nbytes``.
    """

    name: str
    names: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    read: bool
    written: bool


class GraphFile:
    """A graph without its arrays, as a file has it; see :meth:`Graph.save`.

    >>> import eagle
    >>> @eagle.kernel
    ... def double(x: eagle.Scalar) -> eagle.Scalar:
    ...     y = 2.0 * x
    ...     return y
    >>> x = eagle.asarray([1.0, 2.0])
    >>> g = eagle.Graph(name="twice").add(eagle.plan(double).bind(x=x))
    >>> file = GraphFile.of(g)
    >>> file
    <eagle.GraphFile twice: 1 node, planes x, y>
    >>> file.planes["x"].shape, file.planes["y"].written
    ((2,), True)
    """

    def __init__(self, core: _core.GraphFile) -> None:
        self._core = core
        #: By name.
        self.planes: dict[str, SavedPlane] = {row[0]: SavedPlane(*row) for row in core.planes}

    @classmethod
    def of(cls, graph: Graph) -> GraphFile:
        """What ``graph.save`` would write, with the numbers that its Params have now. Raises GraphState."""
        return cls(_core.graph_file(graph._as_core()))

    @classmethod
    def read(cls, source: Source) -> GraphFile:
        """A file by its path, or its bytes. Raises EagleError (a ValueError) that says what is wrong with it."""
        if isinstance(source, GraphFile):
            return source
        if isinstance(source, bytes):
            return cls(_core.GraphFile.parse(source))
        return cls(_core.GraphFile.read(_path("load", source)))

    @property
    def name(self) -> str:
        """The graph's name."""
        return self._core.name

    @property
    def hash(self) -> str:
        """SHA-256 of what is computed: equal for files that do the same to arrays of the same kinds."""
        return self._core.hash

    @property
    def calls(self) -> tuple[str, ...]:
        """What the callables that it needs are called: the labels of their nodes."""
        return tuple(self._core.calls)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Whole or not at all; a file that is there is replaced."""
        self._core.write(_path("save", path))

    def __bytes__(self) -> bytes:
        return self._core.bytes

    def __str__(self) -> str:
        return self._core.picture().rstrip("\n")

    def __repr__(self) -> str:
        nodes = self._core.nodes
        return (
            f"<eagle.GraphFile {self.name or 'without a name'}: {nodes} {'node' if nodes == 1 else 'nodes'}, "
            f"planes {', '.join(self.planes)}>"
        )


class Storable:
    """The part of :class:`eagle.Graph` that has to do with files."""

    _planes: Mapping[str, Any] = {}

    def save(self: G, path: str | os.PathLike[str]) -> G:
        """Writes the graph to a file: nodes, kernels and numbers of Params, as they are now. Returns the graph.

        Arrays are not in it: whoever loads the file gives their own, by the names of ``eagle.GraphFile.read(path)
        .planes``; nor are callables. Programs in C++ load it too (``eagle/client/graph_file.h``), and ``eaglectl graph
        load``. Raises GraphState for an empty graph, EagleError (a ValueError) where it is over 64 MiB, RuntimeError
        where the file cannot be written.

        >>> import os, tempfile, eagle
        >>> @eagle.kernel
        ... def double(x: eagle.Scalar) -> eagle.Scalar:
        ...     y = 2.0 * x
        ...     return y
        >>> path = os.path.join(tempfile.mkdtemp(), "twice.eagle")
        >>> g = eagle.Graph().add(eagle.plan(double).bind(x=eagle.zeros(2))).save(path)
        >>> loaded = eagle.Graph.load(path, {"x": eagle.asarray([1.0, 4.0])}).build().launch()
        >>> loaded.planes["y"]
        array([2., 8.])
        """
        graph: Any = self
        GraphFile.of(graph).write(path)
        return self

    @classmethod
    def load(
        cls: type[G],
        source: Source,
        planes: Mapping[str, Array] | None = None,
        calls: Mapping[str, Callable[[], Any]] | None = None,
        *,
        session: Session | None = None,
        record: bool = False,
    ) -> G:
        """A graph from a file (its path, or its bytes), yet to be built, over these arrays.

        ``planes`` are arrays by names of the file's planes, of the dtype and shape that it tells; those that are not
        given are made, of zeros, and all of them are in ``graph.planes``. ``calls`` are what the file's callables are
        now, by the labels of their nodes; where arrays are on another machine they are called with those that their
        nodes declare, by name. It belongs to ``session``, else to where the arrays live, else to the current session.
        Files may be anybody's: what is wrong with one raises EagleError (a ValueError) before anything is made of it,
        and so do names that it does not have.
        """
        check_session("load", session)
        for what, mapping in (("planes", planes), ("calls", calls)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise refusal("WRONG_TYPE", f"load: {what}: expected a dict by name, found {type(mapping).__name__}")
        file = GraphFile.read(source)
        given: dict[str, Any] = {text("load: planes: name", name): array for name, array in (planes or {}).items()}
        home = session or session_of(given.values()) or default_session()
        if home.closed:
            raise refusal("SESSION_CLOSED", f"load: {home._core.name} is closed; open another session")
        known = set(given)
        made = {plane.name: _made(home, plane) for plane in file.planes.values() if not known.intersection(plane.names)}
        every = {**made, **given}
        by_plane = {plane.name: every[next(n for n in plane.names if n in every)] for plane in file.planes.values()}
        numbered = _numbered(calls or {}, file, by_plane)
        made_by: Any = cls
        graph: Any = made_by(home, record=record, name=file.name or None)
        rows = [(label, number) for number, (label, _) in numbered.items()]
        graph._core = _core.load_graph(home._core, file._core, {**given, **made}, rows, file.name, record)
        graph._calls.update({number: call for number, (_, call) in numbered.items()})
        graph._planes = by_plane
        loaded: G = graph
        return loaded

    @property
    def planes(self) -> dict[str, Any]:
        """Of a graph that was loaded from a file: its arrays, given and made, by the names of the file's planes."""
        return dict(self._planes)


def load_graph(
    session: Session | None,
    source: Source,
    planes: Mapping[str, Array] | None = None,
    calls: Mapping[str, Callable[[], Any]] | None = None,
) -> Graph:
    """:meth:`eagle.Graph.load`, for those who have the session in hand."""
    from eagle.graph import Graph

    return Graph.load(source, planes, calls, session=session)


def _numbered(
    calls: Mapping[str, Any], file: GraphFile, planes: Mapping[str, Any]
) -> dict[int, tuple[str, Callable[[], Any]]]:
    """(label, callable) by the number that launches ask for."""
    from eagle._nodes import _numbers, _with_arrays

    arrays = dict(zip(file.calls, file._core.call_arrays))
    found = {}
    for label, call in calls.items():
        if not callable(call):
            raise refusal("WRONG_TYPE", f"load: calls: {label!r}: expected a callable, found {call!r}")
        reads: dict[str, Any] = {}
        writes: dict[str, Any] = {}
        parts: dict[Any, Any] = {}  # one array read and written is one object
        for name, plane, shape, strides, offset, dtype, written, is_whole in arrays.get(label, ()):
            part = planes[plane]
            if isinstance(part, Plane) and not is_whole:
                place = (plane, shape, strides, offset, dtype)
                part = parts.setdefault(place, _part(part, shape, strides, offset, dtype))
            (writes if written else reads)[name] = part
        found[next(_numbers)] = (text("load: calls: name", label), _with_arrays(call, reads, writes))
    return found


def _part(plane: Plane, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: str) -> Plane:
    """What a node sees of a row-major array."""
    everything = plane._local.reshape(-1).view(np.uint8)
    return Plane(plane._session, np.ndarray(shape, dtype, everything, offset, strides))


def _made(home: Session, plane: SavedPlane) -> Any:
    if plane.dtype.startswith("V"):  # which only callables touch
        return np.zeros(plane.shape, plane.dtype)
    return home.zeros(plane.shape, plane.dtype, name=plane.name)


def _path(method: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise refusal("WRONG_TYPE", f"{method}: expected a path, found {type(path).__name__}")
    found = os.fspath(path)
    if not isinstance(found, str):
        raise refusal("WRONG_TYPE", f"{method}: expected a path as text, found {type(found).__name__}")
    return text(f"{method}: path", found)
