"""Sessions: where things run, and arrays in their memory."""

from __future__ import annotations

import contextvars
import itertools
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Iterable, List, Sequence, Tuple, Union

import numpy as np

from eagle import _core
from eagle._data_classes import NamedTuple
from eagle._shown import bytes_text, escape, pairs_html, pairs_text, rows_html, rows_text, seconds_text
from eagle.errors import refusal, text
from eagle.planes import Plane

if TYPE_CHECKING:
    import numpy.typing as npt

    from eagle.stepping import Run

    Array = npt.NDArray[Any]
else:
    Array = np.ndarray

_LONGEST_LEASE_S = 30 * 24 * 3600

# What `tls=` takes: the path of a CA, or of (CA, certificate, key); True: the CAs that the system trusts.
Tls = Union[str, "os.PathLike[str]", Tuple[Any, Any, Any], bool]
Shape = Union[int, Sequence[int]]

# Every session with a handle or an array alive, so that an array's session can be found from its address. Threads
# add and remove while others look: each access is one step of the interpreter, and needs no lock.
_sessions: dict[int, weakref.ref[Session]] = {}
_session_numbers = itertools.count()
_current: contextvars.ContextVar[Session | None] = contextvars.ContextVar("eagle_session", default=None)


class Host(NamedTuple):
    """The process that computes."""

    pid: int
    name: str


class TenantUse(NamedTuple):
    """One of those who share the daemon's machine, and what is theirs; times are seconds since its worker began."""

    name: str
    weight: float
    priority: int
    sessions: int
    planes: int
    plane_bytes: int
    graphs: int
    jobs: int
    jobs_ended: int
    refused: int
    device_s: float
    compile_s: float
    queue_wait_s: float
    longest_queue_wait_s: float


class SessionInfo(NamedTuple):
    """What :meth:`Session.info` reports: the process that computes, and what it holds now."""

    endpoint: str
    transport: str
    version: str
    host: Host
    threads: int
    cpu: str
    uptime_s: float
    sessions: int
    planes: int
    plane_bytes: int
    plane_budget_bytes: int
    graphs: int
    launches: int
    kernels_cached: int
    #: The caller's; empty in process, where nobody shares.
    tenant: str
    #: All of them for root and whom the daemon runs as; others see their own.
    tenants: tuple[TenantUse, ...]

    def _rows(self) -> dict[str, Any]:
        return {
            "endpoint": f"{self.endpoint}, {self.transport}",
            "version": f"{self.version}, up {seconds_text(self.uptime_s)}",
            "host": f"pid {self.host.pid} of {self.host.name}, {self.threads} threads, {self.cpu}",
            "planes": f"{self.planes:,}, {bytes_text(self.plane_bytes)} of {bytes_text(self.plane_budget_bytes)}",
            "graphs": f"{self.graphs:,}, launched {self.launches:,} times",
            "sessions": f"{self.sessions:,}",
        }

    def __str__(self) -> str:
        return pairs_text("eagle session", self._rows())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return pairs_html("eagle session", self._rows())


class PlaneInfo(NamedTuple):
    """A plane that a session holds, as :meth:`Session.planes` tells it."""

    id: int
    name: str
    nbytes: int
    transport: str
    why: str
    read_only: bool
    huge_bytes: int
    #: ``"cpu"``, or a GPU's: ``"cuda:0"``.
    device: str
    #: Of a GPU's memory: processes that had its handle and still run.
    opened_by: int

    def _row(self) -> tuple[str, ...]:
        how = self.transport + (", huge pages" if self.huge_bytes else "")
        reach = "reading" if self.read_only else "all"
        return str(self.id), self.name, bytes_text(self.nbytes), self.device, how, reach


class PlaneList(List[PlaneInfo]):
    """Planes, as a list that prints as a table."""

    _HEADS = ("id", "name", "size", "device", "transport", "for")

    def _title(self) -> str:
        return f"{len(self)} {'plane' if len(self) == 1 else 'planes'}, {bytes_text(sum(one.nbytes for one in self))}"

    def __str__(self) -> str:
        return rows_text(self._title(), self._HEADS, [one._row() for one in self])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return rows_html(self._title(), self._HEADS, [one._row() for one in self])


class Session:
    """A place where kernels and graphs run: this process (``eagle.local``) or a daemon (``eagle.connect``).

    Inside ``with session:`` it is the current session, and it is closed at the end. Its arrays are numpy
    arrays over memory that the engine computes on; they stay readable after ``close()``, but launches over
    them are refused.

    >>> import eagle
    >>> with eagle.local() as session:
    ...     x = session.full(3, 1.5)
    ...     y = eagle.zeros(2)          # in the same session
    >>> x
    array([1.5, 1.5, 1.5])
    """

    def __init__(self, core: _core.Session) -> None:
        self._core = core
        self._tokens: list[contextvars.Token[Session | None]] = []
        self._pid = os.getpid()
        self._info: SessionInfo | None = None
        self._named: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        number = next(_session_numbers)
        _sessions[number] = weakref.ref(self, lambda _: _sessions.pop(number, None))

    # ---- arrays

    def zeros(
        self, shape: Shape, dtype: npt.DTypeLike = float, device: str | None = None, name: str | None = None
    ) -> Array:
        """An array of zeros in this session's memory.

        ``dtype`` is float64, float32, int64, int32 or bool; ``name`` labels the memory in lists. ``device`` is
        ``"cpu"``, or an NVIDIA GPU of the session's host: ``"cuda:0"``, ``"cuda"`` for the first one, or a UUID; such
        an array is an :class:`eagle.Plane`. Raises EagleError: TypeError for another dtype, ValueError for a shape or a
        device that cannot be, MemoryError where the budget, the system or the GPU has no memory left, RuntimeError
        where there is no driver.

        >>> import eagle
        >>> eagle.zeros((2, 3), dtype="float32").sum()
        np.float32(0.0)
        """
        return self._allocate("zeros", shape, dtype, device, name)

    def _allocate(self, what: str, shape: Shape, dtype: npt.DTypeLike, device: str | None, name: str | None) -> Array:
        where = "" if device in (None, "cpu") else text(f"{what}: device", device)
        if self.closed:
            raise refusal("SESSION_CLOSED", f"{what}: {self._core.name} is closed; open another session")
        label = text(f"{what}: name", name)
        kind = _dtype(dtype).name
        return self._shown(self._core.allocate(_shape(shape), kind, label, what == "zeros", self, where), label)

    def _shown(self, array: Array, label: str) -> Array:
        """The array as users have it: a handle over TCP and on a GPU, which does what its type promises on the way to
        values.
        """
        device = self._core.device_of(array)
        shown: Any = Plane(self, array, device) if device or self._core.copies else array
        if label:
            self._named[label] = shown
        found: Array = shown
        return found

    def empty(
        self, shape: Shape, dtype: npt.DTypeLike = float, device: str | None = None, name: str | None = None
    ) -> Array:
        """Like :meth:`zeros`, for arrays that are written before they are read: the values are unspecified."""
        return self._allocate("empty", shape, dtype, device, name)

    def full(
        self,
        shape: Shape,
        value: Any,
        dtype: npt.DTypeLike | None = None,
        device: str | None = None,
        name: str | None = None,
    ) -> Array:
        """An array filled with ``value``, of ``dtype`` or else the value's own, as ``numpy.full`` has it."""
        kind = np.asarray(value).dtype if dtype is None else dtype
        array = self._allocate("full", shape, kind, device, name)
        if isinstance(array, Plane) and np.ndim(value) == 0:
            array.fill(value)
            return array
        array[...] = value
        return array

    def asarray(
        self, a: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, name: str | None = None
    ) -> Array:
        """The values of ``a`` in this session's memory: ``a`` itself where it lies there already, else a copy.

        ``a`` is anything that ``numpy.asarray`` takes. Copies are row-major.

        >>> import eagle
        >>> x = eagle.asarray([1, 2, 3])
        >>> eagle.asarray(x) is x
        True
        """
        if isinstance(a, np.ndarray) and type(a) is not np.ndarray and isinstance(a, np.ma.MaskedArray):
            raise refusal("WRONG_TYPE", "asarray: a masked array would lose its mask; pass a.filled(value)")
        if isinstance(a, Plane) and a.session is self and dtype in (None, a.dtype) and a._is_on(device):
            same: Any = a
            return same  # type: ignore[no-any-return]
        values = np.asarray(a, dtype=dtype)
        here = device in (None, "cpu") and isinstance(a, np.ndarray) and values is a
        if values.size and here and self._core.owns(values):
            return values
        array = self._allocate("asarray", values.shape, values.dtype, device, name)
        array[...] = values
        return array

    def share(self, a: Any, name: str | None = None) -> Array:
        """``a`` as an array that the engine can reach: as :meth:`asarray`, but that an array on a CUDA GPU (CuPy,
        torch, jax, warp) stays where it is, as :func:`eagle.interop.import_buffer` has it.
        """
        from eagle.interop._cuda import import_from_gpu, on_gpu

        there = on_gpu(a)
        if there is None:
            return self.asarray(a, name=name)
        label = text("share: name", name)
        plane: Any = import_from_gpu(self, a, there, label)
        if label:
            self._named[label] = plane
        found: Array = plane
        return found

    def tensor(self, of: Any, dtype: Any = None, name: str | None = None) -> Any:
        """A torch tensor on the CPU whose memory is an array of this session, so that kernels see what torch stores.

        ``of`` is a shape (zeros), an array of this session (the same memory), or another tensor or array, whose values
        are copied once; a tensor that lies there already is returned as it is, without its gradient. ``dtype`` is
        torch's or numpy's. ``param.data = session.tensor(param.data)`` moves a parameter;
        :func:`eagle.interop.share_parameters` does it for a module. Raises MissingPackage.
        """
        from eagle.interop._exports import tensor  # torch is not needed before

        return tensor(self, of, dtype, name)

    def owns(self, array: Array) -> bool:
        """Whether the array (or the array that it is a view of) lies in this session's memory."""
        return self._core.owns(array)

    def accept(self, array: Array) -> None:
        """Says that ``array`` is fine as it is, although a launch that was cut short may have left it half written.

        A launch that is cancelled, runs out of time or fails in the middle of a replay leaves what it writes neither
        old nor new. The daemon then refuses launches that read such an array (reason ``PLANE_TORN``) until a node has
        written all of it, or it was accepted. Whatever of that kind shares a byte with ``array`` is accepted with it.
        In process nothing is refused, so there is nothing to accept.

        >>> import eagle
        >>> with eagle.local() as session:
        ...     session.accept(session.zeros(3))
        """
        self._core.accept(array)

    # ---- arrays with a name

    def plane(self, name: str) -> Array:
        """The array of this session that was made with this ``name=``, while somebody holds it.

        Raises EagleError (a ValueError) where there is none.

        >>> import eagle
        >>> with eagle.local() as session:
        ...     x = session.full(2, 1.5, name="speed")
        ...     session.plane("speed") is x
        True
        """
        found: Array | None = self._named.get(name)
        if found is None:
            raise refusal("UNKNOWN_NAME", f"plane: this session holds no array named {name!r}; name= makes one")
        return found

    def planes(self) -> PlaneList:
        """The planes that the session holds; small arrays share one, and that of a large one may be a page larger than
        it is, so that arrays begin at different places of their pages. ``transport`` says how values travel, ``why``
        why not another way; ``huge_bytes`` of a plane lie in huge pages (see :func:`connect`).
        """
        return PlaneList(PlaneInfo(*row) for row in _core.planes(self._core))

    def publish(self, a: Array, name: str, mode: str = "r", to: Sequence[str] = ()) -> Array:
        """Gives the array a name, under which other sessions can :meth:`open` it. Returns the array to use from then
        on: ``a`` itself, or, where ``a`` was part of a plane, a copy in a plane of its own.

        Every session of the same principal may open it and write to it. ``to`` names others: ``"uid:1001"``,
        ``"token:NAME"``, ``"certificate:NAME"``, or ``"*"`` for everybody; they may read it, and with ``mode="rw"``
        write it too. The name goes with this session. Raises EagleError (a ValueError) for a name that is taken.

        >>> import eagle
        >>> with eagle.local() as session:
        ...     x = session.publish(session.full(2, 1.5), "speed")
        ...     session.open("speed")
        array([1.5, 1.5])
        """
        if mode not in ("r", "rw"):
            raise refusal("BAD_VALUE", f'publish: mode: expected "r" or "rw", found {mode!r}')
        label = text("publish: name", name)
        new, _, moved = _core.publish(self._core, a, label, mode == "rw", _texts("publish: to", to), self)
        if moved and new is not None:
            return self._shown(new, label)
        self._named[label] = a
        return a

    def open(self, name: str, owner: str | None = None) -> Array:
        """The array that a session of this principal has published under this name, or another one has granted to it.

        ``owner`` says whose, where several have granted one of this name. Raises EagleError (a ValueError) where there
        is none: whether it does not exist or was not granted reads the same. An array that was granted for reading is
        read-only.
        """
        label = text("open: name", name)
        return self._shown(_core.open_published(self._core, label, text("open: owner", owner), self), label)

    def withdraw(self, name: str, principals: Sequence[str] = (), *, seal_off: bool = False) -> None:
        """Takes grants back: of these principals, or of everybody, and then the name goes too.

        Who opened the array can use it in no new graph, run or launch, and what they have under way with it is stopped
        (CANCELLED). What they have mapped they still see, unless
        ``seal_off`` moves the bytes away from it: then they see zeros. That copies the array once, and nobody may write
        to it meanwhile.
        """
        _core.withdraw(self._core, text("withdraw: name", name), _texts("withdraw: principals", principals), seal_off)

    # ---- runs that the host keeps

    def run(self, number: int) -> Run:
        """The submitted run of this user with this id. Raises EagleError (a ValueError) where there is none."""
        from eagle.stepping import Run  # here: stepping.py needs Session

        _core.run_state(self._core, number)
        return Run(self, number)

    def runs(self) -> list[Run]:
        """The submitted runs that the host keeps for this user; in process, for this session.

        >>> import eagle
        >>> eagle.local().runs()
        []
        """
        from eagle.stepping import Run

        return [Run(self, state["id"]) for state in _core.run_states(self._core)]

    # ---- the session itself

    def info(self) -> SessionInfo:
        """The process that computes, and what it holds now. Raises SessionClosed, DaemonUnavailable."""
        found = self._core.info()
        fields = {name: getattr(found, name) for name in SessionInfo._fields}
        fields["host"] = Host(found.host.pid, found.host.host_name)
        fields["tenants"] = tuple(
            TenantUse(*(getattr(tenant, name) for name in TenantUse._fields)) for tenant in found.tenants
        )
        self._info = SessionInfo(**fields)
        return self._info

    @property
    def transport(self) -> str:
        """How arrays and calls travel: ``"in process"``, ``"memfd + ring"`` (launches go through shared memory),
        ``"memfd + grpc"``, or over TCP ``"copy + grpc"``.
        """
        return (self._info or self.info()).transport

    @property
    def resume_token(self) -> str:
        """What ``eagle.connect(resume=...)`` takes to go on with this session, which needs a ``lease``. Keep it
        secret: whoever of this user has it has the session. Empty for a session in process.
        """
        return self._core.resume_token()

    @property
    def closed(self) -> bool:
        """Whether the session has ended."""
        return self._core.closed

    def close(self) -> None:
        """Ends the session: running calls are cancelled, later ones refused. Closing twice is fine."""
        self._core.close()

    def __enter__(self) -> Session:
        if self.closed:
            raise refusal("SESSION_CLOSED", f"with: {self._core.name} is closed; open another session")
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *exception: object) -> None:
        _current.reset(self._tokens.pop())
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<eagle.Session closed>"
        info = self._info or self.info()
        return f"<eagle.Session {info.endpoint}, {info.transport}, {info.threads} threads>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what the session's daemon is at now."""
        return f"<p>{escape(repr(self))}</p>" if self.closed else self.info()._repr_html_()


def connect(
    endpoint: str | None = None,
    *,
    tls: Tls | None = None,
    auth: str | None = None,
    lease: float | None = None,
    resume: str | None = None,
    timeout: float = 10.0,
    traceparent: str | None = None,
    huge_pages: bool = False,
) -> Session:
    """A session in a daemon.

    ``endpoint`` is ``"unix:PATH"`` or ``"dns:HOST:PORT"``; over TCP arrays are :class:`eagle.Plane` handles. ``tls`` is
    the path of the CA that the daemon's certificate must come from, ``(ca, certificate, key)`` where the daemon asks
    for a certificate of the client's, or True for the CAs that the system trusts. ``auth`` is a token. None as
    ``endpoint`` looks at EAGLE_ENDPOINT, /run/eagled/eagled.sock and $XDG_RUNTIME_DIR/eagled.sock, and else
    starts a private daemon that ends with this process. ``timeout`` (seconds) bounds connecting and every short call.
    With ``lease`` (seconds) the daemon keeps the session for so long when this process goes without closing it, or
    over TCP when the connection breaks (there None is as the daemon likes, 30); ``resume``, the ``resume_token`` of a
    session that was kept, goes on with it on a unix socket. ``traceparent`` (W3C Trace Context) stands on the daemon's
    log lines and spans of what the session does; None takes the current span of OpenTelemetry, where the program uses
    that. With ``huge_pages`` arrays of 2 MiB or more lie in huge pages where the daemon's machine gives some to shared
    memory; :meth:`Session.planes` tells whether, and why not. Raises DaemonUnavailable (a ConnectionError),
    ProtocolMismatch, and EagleError: a ValueError for an endpoint that cannot be one, a PermissionError for a token
    that the daemon does not know, or where there is no session to resume.
    """
    if endpoint is not None and not isinstance(endpoint, str):
        raise refusal("WRONG_TYPE", f"connect: endpoint: expected 'unix:PATH', found {type(endpoint).__name__}")
    wait, stays = _real(timeout, "connect: timeout"), 0.0 if lease is None else _real(lease, "connect: lease")
    if lease is not None and not 0 < stays <= _LONGEST_LEASE_S:
        raise refusal("BAD_VALUE", f"connect: a lease of {stays} s; expected above 0 and up to {_LONGEST_LEASE_S}")
    token = text("connect: auth", auth)
    again = text("connect: resume", resume)
    trace = _current_span() if traceparent is None else text("connect: traceparent", traceparent)
    where = text("connect: endpoint", endpoint)
    return Session(_core.connect(where, wait, _tls_files(tls), token, stays, again, trace, bool(huge_pages)))


def _current_span() -> str:
    """The traceparent of OpenTelemetry's current span, where the program has loaded that; else nothing."""
    api = sys.modules.get("opentelemetry.trace")
    span = api.get_current_span().get_span_context() if api is not None else None
    if span is None or not span.is_valid:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"


def local(threads: int | None = None) -> Session:
    """A session in this process. ``threads`` of a team; None takes what the machine and its cgroup allow.

    >>> import eagle
    >>> eagle.local(threads=1).info().threads
    1
    """
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool)):
        raise refusal("WRONG_TYPE", f"local: threads: expected a number, found {type(threads).__name__}")
    if threads is not None and not 1 <= threads < 2**31:
        raise refusal("BAD_VALUE", f"local: threads: expected at least 1, found {threads}")
    return Session(_core.local(threads or 0))


# ---- where a thing runs


class _Defaults:
    """The sessions of this process that nobody opened by name, made on first use and anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[int, str], Session] = {}

    def get(self, endpoint: str) -> Session:
        """The session at this endpoint; "" is the engine in this process."""
        with self._lock:
            key = (os.getpid(), endpoint)
            known = self._made.get(key)
            if known is None or known.closed:
                known = self._made[key] = connect(endpoint) if endpoint else local()
            return known


_defaults = _Defaults()
if hasattr(os, "register_at_fork"):
    # A lock that another thread held at the fork would never be released in the child.
    os.register_at_fork(after_in_child=lambda: setattr(_defaults, "_lock", threading.Lock()))


def check_session(where: str, session: Any) -> None:
    """Refuses what is no session; None is none that somebody chose."""
    if session is not None and not isinstance(session, Session):
        raise refusal("WRONG_TYPE", f"{where}: session: expected an eagle.Session, found {type(session).__name__}")


def default_session() -> Session:
    """The current session, else the one at EAGLE_ENDPOINT, else this process's own ``local()`` one."""
    return _current.get() or _defaults.get(os.environ.get("EAGLE_ENDPOINT", ""))


def local_session() -> Session:
    """This process's own ``local()`` session."""
    return _defaults.get("")


def session_of(arrays: Iterable[Any]) -> Session | None:
    """The session whose memory the first array of any session lies in; None where all are private.

    Arrays of two sessions are refused by name where they meet, in the C++ library.
    """
    for array in arrays:
        if isinstance(array, Plane) and array.session._pid == os.getpid():
            return array.session
        if isinstance(array, np.ndarray) and array.size:
            for known in _sessions.copy().values():
                session = known()
                if session is not None and session._pid == os.getpid() and session.owns(array):
                    return session
    return None


def zeros(shape: Shape, dtype: npt.DTypeLike = float, device: str | None = None, name: str | None = None) -> Array:
    """:meth:`Session.zeros` of the current session.

    >>> import eagle
    >>> eagle.zeros(3)
    array([0., 0., 0.])
    """
    return default_session().zeros(shape, dtype, device, name)


def empty(shape: Shape, dtype: npt.DTypeLike = float, device: str | None = None, name: str | None = None) -> Array:
    """:meth:`Session.empty` of the current session.

    >>> import eagle
    >>> eagle.empty((2, 3)).shape
    (2, 3)
    """
    return default_session().empty(shape, dtype, device, name)


def full(
    shape: Shape, value: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, name: str | None = None
) -> Array:
    """:meth:`Session.full` of the current session.

    >>> import eagle
    >>> eagle.full(3, 7)
    array([7, 7, 7])
    """
    return default_session().full(shape, value, dtype, device, name)


def asarray(a: Any, dtype: npt.DTypeLike | None = None, device: str | None = None, name: str | None = None) -> Array:
    """:meth:`Session.asarray` of the current session.

    >>> import eagle
    >>> eagle.asarray([1.0, 2.0])
    array([1., 2.])
    """
    return default_session().asarray(a, dtype, device, name)


def share(a: Any, name: str | None = None) -> Array:
    """:meth:`Session.share` of the current session.

    >>> import eagle, numpy as np
    >>> eagle.share(np.arange(3))
    array([0, 1, 2])
    """
    return default_session().share(a, name)


def counters() -> dict[str, int]:
    """What the sessions of this process have done so far; each moves on success only.

    ``graph_builds``, ``captures`` (CUDA graphs; none on a CPU), ``binds``, ``rebinds``, ``updates``, ``launches``
    (whole runs of graphs), ``runs`` (simulations), ``compiles`` (builds and runs that compiled something).

    >>> import eagle
    >>> before = eagle.counters()
    >>> g = eagle.Graph().add_node(eagle.graph.opaque(lambda: None)).build().launch(5)
    >>> after = eagle.counters()
    >>> after["graph_builds"] - before["graph_builds"], after["launches"] - before["launches"]
    (1, 5)
    """
    return _core.counters()


# ---- details


def _texts(where: str, values: Any) -> list[str]:
    if isinstance(values, str):
        return [text(where, values)]
    return [text(where, value) for value in values]


def _tls_files(tls: Any) -> tuple[str, str, str] | None:
    """(ca, certificate, key) as paths; an empty CA: whom the system trusts."""
    if tls is None or tls is False:
        return None
    if tls is True:
        return "", "", ""
    parts = tls if isinstance(tls, tuple) else (tls, "", "")
    if len(parts) != 3 or not all(isinstance(part, (str, os.PathLike)) for part in parts):
        raise refusal(
            "WRONG_TYPE", f"connect: tls: expected the path of a CA, (ca, certificate, key) or True, found {tls!r}"
        )
    ca, certificate, key = (os.fspath(part) for part in parts)
    return ca, certificate, key


def _shape(shape: Any) -> list[int]:
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        extents = [item.__index__() for item in items]
    except AttributeError:
        raise refusal("WRONG_TYPE", f"shape {shape!r}: expected a number or a tuple of them") from None
    if any(not -(2**63) <= extent < 2**63 for extent in extents):
        raise refusal("BAD_VALUE", f"shape {shape!r}: an extent over 2^63")
    return extents


def _dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise refusal("WRONG_DTYPE", f"dtype {dtype!r}: {error}; give float64, float32, int64, int32 or bool") from None
    if not found.isnative:
        raise refusal(
            "WRONG_DTYPE",
            f"dtype {found} ({found.name}): arrays are in this machine's byte order; give float64, float32, int64, "
            "int32 or bool",
        )
    return found


def _real(value: Any, where: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise refusal("BAD_VALUE", f"{where}: the number is over the range of float64") from None
    raise refusal("WRONG_TYPE", f"{where}: expected a number, found {type(value).__name__}")
