"""Launches that an event loop awaits."""

from __future__ import annotations

import asyncio
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Mapping

# One thread for the callables of each session, so that no two of them run at once; never an event loop's.
_callbacks: weakref.WeakKeyDictionary[Any, ThreadPoolExecutor] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


async def run_async(
    launch: Callable[[int, Mapping[int, Callable[[], Any]]], Any],
    n: int,
    calls: Mapping[int, Callable[[], Any]],
    *,
    key: Any,
    cancel: Callable[[], None],
) -> Any:
    """What ``launch(n, calls)`` returns, run in a thread of its own; ``key`` is the session."""
    outcome: Future[Any] = Future()
    threading.Thread(target=_run, args=(outcome, launch, n, _elsewhere(calls, key)), daemon=True).start()
    waiting = asyncio.wrap_future(outcome)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # Nothing may compute on the caller's arrays after this.
        cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.exception()
        raise


def _run(outcome: Future[Any], launch: Callable[..., Any], n: int, calls: dict[int, Callable[[], Any]]) -> None:
    try:
        outcome.set_result(launch(n, calls))
    except BaseException as error:
        outcome.set_exception(error)


def _elsewhere(calls: Mapping[int, Callable[[], Any]], key: Any) -> dict[int, Callable[[], Any]]:
    if not calls:
        return {}
    with _lock:
        pool = _callbacks.get(key)
        if pool is None:
            pool = _callbacks[key] = ThreadPoolExecutor(1, "eagle callbacks")
    return {number: _in(pool, fn) for number, fn in calls.items()}


def _in(pool: ThreadPoolExecutor, fn: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: pool.submit(fn).result()
