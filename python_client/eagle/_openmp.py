"""Loads the engine, and with it OpenMP, so that its threads do not wait for each other without sleeping for long.

libgomp reads how long when it is loaded, and its own choice, milliseconds, makes a launch beside busy neighbours a
hundred times as slow. What the user has said stands; processes that this one starts see nothing of it.
"""

import os
import sys
from importlib import import_module

from eagle import _neighbours

SPIN_COUNT = "200"  # as engine/run/spin_limit.h


def _load() -> None:
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)  # functions are looked up when they are called, which most of gRPC's never are
    try:
        core = import_module("eagle._core")
    except ImportError as error:
        raise _neighbours.foreign_core(error.path, str(error)) from error
    finally:
        sys.setdlopenflags(flags)
    if not hasattr(core, "reasons"):
        raise _neighbours.foreign_core(core.__file__, "it has no table of reasons")


_neighbours.warn_of_neighbours(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
    _load()
else:
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        _load()
    finally:
        del os.environ["GOMP_SPINCOUNT"]

__all__ = ["SPIN_COUNT"]
