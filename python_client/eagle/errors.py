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

from eagle._core import (
    Busy,
    CompileFailed,
    ConditionalInUse,
    CopyBoundPlane,
    DaemonUnavailable,
    DeadlineExceeded,
    EagleError,
    GraphState,
    KernelSyntaxError,
    LimitExceeded,
    MalformedKernel,
    MixedDevices,
    PrivateArray,
    ProtocolMismatch,
    RacingSiblings,
    SessionClosed,
)
from eagle._core import error as refusal

__all__ = [
    "Busy",
    "CompileFailed",
    "ConditionalInUse",
    "CopyBoundPlane",
    "DaemonUnavailable",
    "DeadlineExceeded",
    "EagleError",
    "GraphState",
    "KernelSyntaxError",
    "LimitExceeded",
    "MalformedKernel",
    "MixedDevices",
    "PrivateArray",
    "ProtocolMismatch",
    "RacingSiblings",
    "SessionClosed",
    "refusal",
]
