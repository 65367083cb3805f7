"""eagle: per-sample kernels and graphs of them, run by this process or by the daemon `eagled`.

>>> import eagle
>>> from eagle import Mutable, Param, Scalar, Terminated, kernel
>>> @kernel
... def fall(y: Mutable[Scalar], v: Mutable[Scalar], dt: Param, done: Terminated):
...     y, v = y + dt * v, v - dt * 9.81
...     done = y < 0.0
>>> y, v, done = eagle.asarray([1.0, 20.0]), eagle.zeros(2), eagle.zeros(2, dtype=bool)
>>> result = eagle.simulate(fall, max_steps=1000, y=y, v=v, dt=0.01, done=done)
>>> result.status, result.steps
('finished', 203)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagle import graph, math
from eagle._core import __version__
from eagle._kernel import Kernel, kernel
from eagle.errors import (
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
from eagle.graph import Graph, SkipGuard, repeat_while, skippable
from eagle.language import (
    bounded,
    dispatch,
    matrix,
    n_samples,
    quat,
    sample_index,
    select,
    step_index,
    vector,
)
from eagle.roles import Index, Matrix, Mutable, Param, Quat, Scalar, Table, Terminated, Vector
from eagle.samples import samples_first, samples_last
from eagle.session import Session, asarray, connect, empty, full, local, share, zeros
from eagle.stepping import SimResult, simulate

if TYPE_CHECKING:
    from eagle._plan_module import PlanModule

    plan: PlanModule
else:
    from eagle import plan

__all__ = [
    "Busy",
    "CompileFailed",
    "ConditionalInUse",
    "CopyBoundPlane",
    "DaemonUnavailable",
    "DeadlineExceeded",
    "EagleError",
    "Graph",
    "GraphState",
    "Index",
    "Kernel",
    "KernelSyntaxError",
    "LimitExceeded",
    "MalformedKernel",
    "Matrix",
    "MixedDevices",
    "Mutable",
    "Param",
    "PrivateArray",
    "ProtocolMismatch",
    "Quat",
    "RacingSiblings",
    "Scalar",
    "Session",
    "SessionClosed",
    "SimResult",
    "SkipGuard",
    "Table",
    "Terminated",
    "Vector",
    "__version__",
    "asarray",
    "bounded",
    "connect",
    "dispatch",
    "empty",
    "full",
    "graph",
    "kernel",
    "local",
    "math",
    "matrix",
    "n_samples",
    "plan",
    "quat",
    "repeat_while",
    "sample_index",
    "samples_first",
    "samples_last",
    "select",
    "share",
    "simulate",
    "skippable",
    "step_index",
    "vector",
    "zeros",
]
