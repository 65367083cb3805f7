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

from typing import TYPE_CHECKING, Any

from eagle import _openmp as _openmp  # before anything else loads the engine

# isort: split
from importlib import import_module

from eagle import math as math
from eagle import random as random
from eagle._core import __version__
from eagle._kernel import Kernel, kernel
from eagle._nodes import SkipGuard, copy, reduce, repeat_while, skippable
from eagle._primitive import primitive
from eagle._shared_arrays import share_from_the_start, shared_arrays
from eagle.errors import (
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
from eagle.planes import Plane
from eagle.roles import Accum, Index, Matrix, Mutable, Param, Quat, Reduce, Scalar, Table, Terminated, Vector
from eagle.samples import samples_first, samples_last
from eagle.session import Session, asarray, connect, counters, empty, full, local, share, zeros
from eagle.stepping import (
    Run,
    SimResult,
    combine_shards,
    run_until_done,
    shards,
    simulate,
    simulation,
    submit,
    until_done,
)

if TYPE_CHECKING:
    from eagle import diff as diff
    from eagle import graph as graph
    from eagle import interop as interop
    from eagle._graph_files import GraphFile as GraphFile
    from eagle._graph_files import load_graph as load_graph
    from eagle._pipeline import GraphPipeline as GraphPipeline
    from eagle._plan_module import PlanModule
    from eagle.graph import Graph as Graph

    plan: PlanModule
else:
    from eagle import plan

# Without `math` and `random`: `from eagle import *` would hide Python's own. They are attributes.
__all__ = [
    "Accum",
    "Busy",
    "CompileFailed",
    "ConditionalInUse",
    "CopyBoundPlane",
    "DaemonUnavailable",
    "DeadlineExceeded",
    "DerivativeKernel",
    "EagleError",
    "Graph",
    "GraphFile",
    "GraphPipeline",
    "GraphState",
    "Index",
    "Kernel",
    "KernelSyntaxError",
    "LimitExceeded",
    "MalformedKernel",
    "Matrix",
    "MissingPackage",
    "MixedDevices",
    "Mutable",
    "Param",
    "Plane",
    "PrivateArray",
    "ProtocolMismatch",
    "Quat",
    "RacingSiblings",
    "Reduce",
    "Run",
    "Scalar",
    "Session",
    "SessionClosed",
    "SimResult",
    "SkipGuard",
    "Table",
    "Terminated",
    "Vector",
    "WorkerRestarted",
    "__version__",
    "asarray",
    "bounded",
    "combine_shards",
    "connect",
    "copy",
    "counters",
    "diff",
    "dispatch",
    "empty",
    "full",
    "graph",
    "kernel",
    "load_graph",
    "local",
    "matrix",
    "n_samples",
    "plan",
    "primitive",
    "quat",
    "reduce",
    "repeat_while",
    "run_until_done",
    "sample_index",
    "samples_first",
    "samples_last",
    "select",
    "shards",
    "share",
    "shared_arrays",
    "simulate",
    "simulation",
    "skippable",
    "step_index",
    "submit",
    "until_done",
    "vector",
    "zeros",
]

share_from_the_start()

# What programs that only step or map need not wait for is imported when it is asked for. By name, where it comes from.
_LATER = {
    "Graph": "eagle.graph",
    "GraphFile": "eagle._graph_files",
    "GraphPipeline": "eagle._pipeline",
    "diff": "eagle.diff",
    "graph": "eagle.graph",
    "interop": "eagle.interop",
    "load_graph": "eagle._graph_files",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'eagle' has no attribute {name!r}")
    module = import_module(_LATER[name])
    found = module if module.__name__ == f"eagle.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
