"""What callables and captured graphs of this program do on a GPU: the calls that a graph makes of them."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, TypeVar

from eagle import _core
from eagle._gpu_streams import current, handle_of, torch_stream, what_spoils
from eagle.errors import EagleError, refusal
from eagle.planes import Plane

Arrays = Mapping[str, Any]
T = TypeVar("T")


def on_gpu(array: Any) -> bool:
    """Whether it is an array of a session in memory of a GPU."""
    return isinstance(array, Plane) and array.device != "cpu"


def takes_nothing(fn: Callable[..., Any]) -> bool:
    """Whether it has no parameters, and works on arrays that it knows itself."""
    try:
        return not inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


class GpuCall:
    """A callable of a node; ``call()`` is what a launch does where the GPU's graph does not do it by itself."""

    prepares = False  # the build has something to ask it

    def __init__(self, arrays: Arrays) -> None:
        there = [array for array in arrays.values() if on_gpu(array)]
        self._first = there[0]

    @property
    def _in_process(self) -> bool:
        return not self._first._session._core.remote

    def _place(self) -> tuple[int, str]:
        """The GPU's number in this process, and its UUID."""
        _, ordinal, uuid = self._first._pointer()
        return ordinal, uuid


class OnStream(GpuCall):
    """``fn`` at each launch, on a stream of the program's. What it returns is kept until the launch is over, or the
    stream has come that far: of long launches some replays' results at most.
    """

    _MOST_KEPT = 16

    def __init__(self, fn: Callable[..., Any], arrays: Arrays, given: Callable[[], Arrays], stream: Any) -> None:
        super().__init__(arrays)
        self._fn, self._given, self._stream = fn, given, stream
        self._handle = handle_of(stream)
        self._kept: list[list[Any]] = []  # by replay

    @property
    def handle(self) -> int:
        """Of the stream."""
        return self._handle

    def __call__(self) -> None:
        ordinal, uuid = self._place()
        if len(self._kept) >= self._MOST_KEPT:
            _core.wait_for_stream(uuid, self._handle)
            self.over()
        with current(self._handle, ordinal):
            result = self._fn() if takes_nothing(self._fn) else self._fn(**self._given())
        self._keep(result, ordinal)
        if not self._in_process:
            _core.wait_for_stream(uuid, self._handle)
            self.over()

    def _keep(self, result: Any, ordinal: int) -> None:
        leaves = list(_leaves(result))
        if leaves:
            self._kept.append(leaves)
        for one in leaves:
            # torch gives a tensor's memory to the next who asks on the stream that it was made on.
            if callable(getattr(one, "record_stream", None)):
                one.record_stream(torch_stream(self._stream, self._handle, ordinal))

    def over(self) -> None:
        """The launch is, or what it enqueued."""
        self._kept.clear()


class Captured(GpuCall):
    """``fn`` once, captured: by the build in process, else with the first launch, and replayed."""

    prepares = True

    def __init__(self, fn: Callable[..., Any], arrays: Arrays, given: Callable[[], Arrays]) -> None:
        super().__init__(arrays)
        self._fn, self._given = fn, given
        self._work: _core.CapturedWork | None = None
        self.guessed = False  # the last capture was refused for what another thread may have done

    def capture(self, stream: int) -> str | None:
        """Enqueues on the stream that is captured; why that cannot be captured, where the driver saw nothing."""
        ordinal, _ = self._place()
        self.guessed = False
        with what_spoils(ordinal) as spoiled, current(stream, ordinal, capturing=True):
            # What it makes on the way is gone afterwards, and the graph would still have its address.
            self._fn() if takes_nothing(self._fn) else self._fn(**self._given())
        self.guessed = spoiled.guessed
        return spoiled.why

    def __call__(self) -> None:
        if self._work is None:
            uuid = self._place()[1]
            self._work = _once_more([self], lambda: _core.captured_work(uuid, self.capture))
        self._work.replay()


class Child(GpuCall):
    """A graph that a package captured: a node of the graph in process, where its handle is to be had, or replayed."""

    prepares = True

    def __init__(self, owner: Any, arrays: Arrays) -> None:
        super().__init__(arrays)
        self._owner = owner
        self._replay = replay_of(owner)
        self._there = {key: array for key, array in arrays.items() if on_gpu(array)}
        self._captured = {key: array._pointer()[0] for key, array in self._there.items()}

    def _check(self) -> None:
        for key, array in self._there.items():
            if array._pointer()[0] != self._captured[key]:
                raise refusal(
                    "BAD_VALUE",
                    f"child: '{key}' lies at another address than when the node was made, and the captured graph has "
                    "that one; capture it again over this array, and make the node anew",
                )

    def graph(self) -> int:
        """The CUgraph that the owner has now; 0: none."""
        self._check()
        return raw_graph_of(self._owner)

    def __call__(self) -> None:
        if self._replay is None:
            raise refusal(
                "WRONG_TYPE",
                f"child: a {type(self._owner).__name__} has a CUDA graph and no method replay(), which a daemon's "
                "graph needs: the daemon cannot have your process's graph as a node of its own",
            )
        self._check()
        self._replay()
        _core.wait_for_stream(self._place()[1], None)


def build(core: _core.Graph, choices: Sequence[tuple[str, str]], calls: Mapping[int, Callable[[], Any]]) -> None:
    """Builds a graph with what its callables have to say to that."""
    if any(getattr(call, "prepares", False) for call in calls.values()):
        _once_more(calls.values(), lambda: core.build_with(choices, calls))
    else:
        core.build(choices)


def _once_more(calls: Iterable[Any], capture: Callable[[], T]) -> T:
    """What ``capture`` gives, which is asked again where what refused it may have been another thread's doing."""
    try:
        return capture()
    except EagleError:
        if not any(getattr(call, "guessed", False) for call in calls):
            raise
    return capture()


def raw_graph_of(owner: Any) -> int:
    """The CUgraph of a ``torch.cuda.CUDAGraph(keep_graph=True)``, a ``warp.Graph``, a ``cupy.cuda.Graph``, or whatever
    else has ``raw_cuda_graph()``; 0: it has none, or gives none away.
    """
    try:
        if callable(getattr(owner, "raw_cuda_graph", None)):
            found = owner.raw_cuda_graph()
        elif type(owner).__module__.partition(".")[0] in ("warp", "cupy"):  # elsewhere that name may mean anything
            found = owner.graph
        else:
            return 0
    except (AttributeError, RuntimeError):
        return 0
    found = getattr(found, "value", found)  # of a ctypes.c_void_p
    return int(found) if isinstance(found, int) and not isinstance(found, bool) else 0


def replay_of(owner: Any) -> Callable[[], Any] | None:
    """What runs it by itself."""
    warp = sys.modules.get("warp")
    if warp is not None and isinstance(owner, getattr(warp, "Graph", ())):
        return lambda: warp.capture_launch(owner)
    return (lambda: owner.replay()) if callable(getattr(owner, "replay", None)) else None


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for one in result.values():
            yield from _leaves(one)
    elif isinstance(result, Sequence) and not isinstance(result, (str, bytes)):
        for one in result:
            yield from _leaves(one)
    elif result is not None:
        yield result
