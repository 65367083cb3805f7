"""Launches that an event loop awaits."""

from __future__ import annotations

import asyncio
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Callable, Mapping

Calls = Mapping[int, Callable[[], Any]]

# One thread for the callables of each session, so that no two of them run at once; never an event loop's.
_callbacks: weakref.WeakKeyDictionary[Any, ThreadPoolExecutor] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
# The sessions of which this code is part of a callable, and so holds the thread.
_within: ContextVar[frozenset[Any]] = ContextVar("eagle callables", default=frozenset())


async def run_async(launch: Callable[[Calls], Any], calls: Calls, *, key: Any, cancel: Callable[[], None]) -> Any:
    """What ``launch(calls)`` returns, run in a thread of its own; ``key`` is the session.

    ``cancel`` ends the launch, and keeps one that has yet to begin from it.
    """
    outcome: Future[Any] = Future()
    threading.Thread(target=_run, args=(outcome, launch, _elsewhere(calls, key)), daemon=True).start()
    waiting = asyncio.wrap_future(outcome)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # Nothing may compute on the caller's arrays after this, however often he cancels.
        cancel()
        while not waiting.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.exception()
        raise


def _run(outcome: Future[Any], launch: Callable[[Calls], Any], calls: Calls) -> None:
    try:
        outcome.set_result(launch(calls))
    except BaseException as error:
        outcome.set_exception(error)


def _elsewhere(calls: Calls, key: Any) -> Calls:
    """The callables as the session's thread calls them.

    Those of a launch that a callable starts are called in the launch's own thread: the session's is that callable's.
    """
    if not calls:
        return {}
    marked = {number: _marked(fn, _within.get() | {key}) for number, fn in calls.items()}
    if key in _within.get():
        return marked
    with _lock:
        pool = _callbacks.get(key)
        if pool is None:
            pool = _callbacks[key] = ThreadPoolExecutor(1, "eagle callbacks")
    return {number: _in(pool, fn) for number, fn in marked.items()}


def _marked(fn: Callable[[], Any], within: frozenset[Any]) -> Callable[[], Any]:
    def call() -> Any:
        before = _within.set(within)
        try:
            return fn()
        finally:
            _within.reset(before)

    return call


def _in(pool: ThreadPoolExecutor, fn: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: pool.submit(fn).result()
