"""Exceptions: every refusal is an :class:`EagleError` and the builtin a Python user expects.

``error.reason`` is a stable name that programs may rely on ("WRONG_SHAPE"), ``error.code`` its canonical
code ("INVALID_ARGUMENT"). The classes are made from the one table of reasons that daemon, manual and C++
client share.

>>> import eagle
>>> try:
...     eagle.zeros(3, dtype="float16")
... except TypeError as error:
...     print(isinstance(error, eagle.EagleError), error.reason)
True WRONG_DTYPE
"""

from __future__ import annotations

from typing import Any

from eagle._core import (
    Busy,
    CompileFailed,
    ConditionalInUse,
    CopyBoundPlane,
    DaemonUnavailable,
    DeadlineExceeded,
    DerivativeKernel,
    EagleError,
    GraphState,
    KernelSyntaxError,
    LimitExceeded,
    MalformedKernel,
    MissingPackage,
    MixedDevices,
    PrivateArray,
    ProtocolMismatch,
    RacingSiblings,
    SessionClosed,
    WorkerRestarted,
)
from eagle._core import error as _error
from eagle._core import reasons as _reasons

__all__ = [
    "Busy",
    "CompileFailed",
    "ConditionalInUse",
    "CopyBoundPlane",
    "DaemonUnavailable",
    "DeadlineExceeded",
    "DerivativeKernel",
    "EagleError",
    "GraphState",
    "KernelSyntaxError",
    "LimitExceeded",
    "MalformedKernel",
    "MissingPackage",
    "MixedDevices",
    "PrivateArray",
    "ProtocolMismatch",
    "RacingSiblings",
    "SessionClosed",
    "WorkerRestarted",
    "refusal",
    "text",
]

_CLASSES = frozenset(row[2] for row in _reasons())


def refusal(reason: str, message: str) -> EagleError:
    """The exception of this reason. What UTF-8 cannot hold (lone surrogates) is shown as an escape."""
    return _error(reason, message.encode("utf-8", "backslashreplace").decode())


def text(where: str, value: Any) -> str:
    """``value`` as a text that UTF-8 can hold; None is the empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise refusal("WRONG_TYPE", f"{where}: expected a text, found {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refusal(
            "BAD_VALUE",
            f"{where}: {value!r} has a lone surrogate (U+{ord(value[error.start]):04X}), which is no character; "
            "expected a text that UTF-8 can hold; decode bytes with errors='replace'",
        ) from None
    return str(value)


def _reduce(error: EagleError) -> Any:
    """Classes that are made for one reason are found again by it: their names are those of the classes above."""
    if type(error) not in _CLASSES or not error.reason:
        return Exception.__reduce__(error)
    return refusal, (error.reason, str(error)), error.__dict__


EagleError.__reduce__ = _reduce  # type: ignore[method-assign,assignment]
