"""shared_arrays: numpy's own arrays, in the memory of a session."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from eagle import _core
from eagle.errors import refusal
from eagle.session import Session, default_session


@contextlib.contextmanager
def shared_arrays(session: Session | None = None) -> Iterator[Session]:
    """Inside it numpy makes its arrays in the memory of ``session`` (None: the current one), temporaries included.

    So ``np.zeros``, ``np.linspace``, ``x + y`` and all others give arrays that kernels of a daemon can run over, and a
    script needs no other change. The arrays live on after it. It holds in the current thread, or task of an event loop
    (numpy keeps its allocator in a context variable); ``EAGLE_SHARED_ARRAYS=1`` holds from the import of eagle on.

    >>> import eagle, numpy as np
    >>> with eagle.shared_arrays() as session:
    ...     x = np.linspace(0.0, 1.0, 5)
    >>> session.owns(x), session.owns(np.zeros(3))
    (True, False)
    """
    home = session or default_session()
    if not isinstance(home, Session):
        raise refusal("WRONG_TYPE", f"shared_arrays: expected an eagle.Session, found {type(home).__name__}")
    if home._core.copies:
        raise refusal(
            "BAD_VALUE",
            f"shared_arrays: {home!r} is on another machine, and numpy's arrays are in this process; make arrays with "
            "session.asarray(...)",
        )
    before = _core.set_allocator(_core.allocator_of(home._core))
    try:
        yield home
    finally:
        _core.set_allocator(before)


def share_from_the_start() -> None:
    """What ``EAGLE_SHARED_ARRAYS=1`` asks for: the whole program, in its main thread."""
    if os.environ.get("EAGLE_SHARED_ARRAYS") == "1":
        _core.set_allocator(_core.allocator_of(default_session()._core))
