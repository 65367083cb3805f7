"""Streams of other packages: their handles, and one of them as the current one of each while a callable runs."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import Any, Iterator

from eagle.errors import EagleError, refusal

_here = threading.local()


def current_stream() -> int:
    """The CUstream, as an integer, on which a callable of a graph is to enqueue: the one that is captured, or its
    node's own (``stream=``). torch, CuPy and Warp have it as their current stream meanwhile; this is for everything
    else. Raises GraphState outside of such a callable.
    """
    handle: int | None = getattr(_here, "stream", None)
    if handle is None:
        raise refusal(
            "GRAPH_STATE",
            "current_stream: no callable of a graph runs in this thread that works on a GPU's stream: only those of "
            "opaque(fn, stream=...) and opaque(fn, captured=True) have one",
        )
    return handle


def check_stream(stream: Any) -> None:
    """A torch, CuPy or Warp stream, or the handle of one."""
    handle = isinstance(stream, int) and not isinstance(stream, bool)
    if handle or any(hasattr(stream, known) for known in ("cuda_stream", "ptr", "__cuda_stream__")):
        return
    raise refusal(
        "WRONG_TYPE",
        f"opaque: stream: expected a torch, CuPy or Warp stream or an integer handle, found {type(stream).__name__}",
    )


def handle_of(stream: Any) -> int:
    """Its CUstream."""
    for known in ("cuda_stream", "ptr"):
        if hasattr(stream, known):
            handle = getattr(stream, known)
            return int(getattr(handle, "value", handle) or 0)
    return int(stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream)


@contextmanager
def current(handle: int, ordinal: int, *, capturing: bool = False) -> Iterator[None]:
    """The stream is the current one of this thread, for eagle and for every package that is loaded."""
    outer = getattr(_here, "stream", None)
    with ExitStack() as stack:
        torch = _cuda_of("torch")
        if torch is not None:
            stack.enter_context(torch.stream(torch.ExternalStream(handle, device=f"cuda:{ordinal}")))
        cupy = _cuda_of("cupy")
        if cupy is not None:
            stack.enter_context(cupy.Device(ordinal))
            stack.enter_context(cupy.ExternalStream(handle, ordinal))
        warp = sys.modules.get("warp")
        if warp is not None and hasattr(warp, "ScopedStream"):
            stream = warp.Stream(f"cuda:{ordinal}", cuda_stream=handle)
            stack.enter_context(warp.ScopedStream(stream))
            if capturing:  # begun here, and not by warp
                warp.capture_begin(stream=stream, external=True)
                stack.callback(warp.capture_end, stream=stream)
        _here.stream = handle
        try:
            yield
        finally:
            _here.stream = outer


_WAY_OUT = "give the callable stream=... or eager=True, and it runs at each launch"


class Spoiled:
    """Why what was done meanwhile cannot be captured, in words; None: it can, as far as is known here."""

    why: str | None = None
    guessed = False  # it may have been another thread's


def refuse_while_captured(what: str) -> None:
    """Values that travel within a capture are those of the build, once and for all."""
    spoiled: Spoiled | None = getattr(_here, "spoiled", None)
    if spoiled is not None:
        spoiled.why = f"it cannot be captured as part of a CUDA graph: {what} waits for the GPU; {_WAY_OUT}"
        raise refusal("GRAPH_STATE", spoiled.why)


@contextmanager
def what_spoils(ordinal: int) -> Iterator[Spoiled]:
    """Sees what the driver does not hear of: allocations that torch serves from memory that it has, and values that
    are sent and fetched by another thread.
    """
    spoiled = _here.spoiled = Spoiled()
    torch = _cuda_of("torch")
    before = _allocations(torch, ordinal)
    try:
        yield spoiled
    except EagleError:
        if spoiled.why is None:
            raise
    finally:
        _here.spoiled = None
    count = _allocations(torch, ordinal) - before
    if count > 0:
        spoiled.guessed = spoiled.why is None  # torch counts for all threads
        spoiled.why = (
            f"it cannot be captured as part of a CUDA graph: torch allocated {count} tensors on the GPU meanwhile, "
            f"whose memory would be somebody else's at the next launch; allocate before and use out=, or {_WAY_OUT}. "
            "Tensors of other threads count as well: let those rest during the build"
        )


def _allocations(torch: Any, ordinal: int) -> int:
    return 0 if torch is None else int(torch.memory_stats(ordinal).get("allocation.all.allocated", 0))


def torch_stream(stream: Any, handle: int, ordinal: int) -> Any:
    """As torch wants it for ``record_stream``."""
    torch = _cuda_of("torch")
    if torch is None or isinstance(stream, getattr(torch, "Stream", ())):
        return stream
    return torch.ExternalStream(handle, device=f"cuda:{ordinal}")


def _cuda_of(package: str) -> Any:
    """``torch.cuda`` or ``cupy.cuda``, where the package is loaded and can use a GPU."""
    cuda = getattr(sys.modules.get(package), "cuda", None)
    if cuda is None or not cuda.is_available():
        return None
    return cuda
