"""Loads the engine, and with it OpenMP, so that its threads do not wait for each other without sleeping for long.

libgomp reads how long when it is loaded, and its own choice, milliseconds, makes a launch beside busy neighbours a
hundred times as slow. What the user has said stands; processes that this one starts see nothing of it.
"""

import os
from importlib import import_module

SPIN_COUNT = "200"  # as engine/run/spin_limit.h

if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
    import_module("eagle._core")
else:
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        import_module("eagle._core")
    finally:
        del os.environ["GOMP_SPINCOUNT"]

__all__ = ["SPIN_COUNT"]
