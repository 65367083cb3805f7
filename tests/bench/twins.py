"""The hand-written C++ twins (``twins.cpp``), called on numpy arrays and planes of sessions alike.

Why ctypes: a twin gets the very arrays that our forms get, in one process, so the forms of a row can take turns and
their answers can be compared bit for bit; and a call costs about a microsecond, which repeating the work inside of the
call takes out of short rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from harness import BUILD

LINKS = 16
EULER, RK4 = 0, 1


def pointer(array: Any) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


class Twins:
    """Each method is a twin on ``threads`` threads; its comment in the header says what it is and why it is fair."""

    def __init__(self, threads: int) -> None:
        path = BUILD / "lib" / "libeagle_twins.so"
        if not path.is_file():
            raise SystemExit(f"no {path}: build it with `cmake --build {BUILD} --target eagle_twins`")
        self._library = ctypes.CDLL(str(path))
        self._library.twin_sum.restype = ctypes.c_double
        self._library.twin_mixed_libmvec.restype = ctypes.c_bool
        self._library.twin_mixed_sleef.restype = ctypes.c_bool
        self.threads = threads
        self.vectors_at_once: int = self._library.twin_vectors_at_once()

    def _call(self, name: str, *arguments: Any) -> Any:
        kinds = {int: ctypes.c_int64, float: ctypes.c_double}
        passed = [pointer(a) if isinstance(a, np.ndarray) else kinds.get(type(a), lambda v: v)(a) for a in arguments]
        return getattr(self._library, name)(*passed)

    def _team(self, threads: int | None = None) -> ctypes.c_int:
        return ctypes.c_int(threads or self.threads)

    def chain(self, form: str, planes: Sequence[np.ndarray], links: np.ndarray, count: int) -> None:
        """``form``: blocked, stored or scratch."""
        rows = np.array([plane.ctypes.data for plane in planes], dtype=np.uintp)
        self._call(f"twin_chain_{form}", rows, links, planes[0].size, self._team(), count)

    def branches(self, chains: Sequence[Sequence[np.ndarray]], links: np.ndarray, count: int) -> None:
        rows = np.array([plane.ctypes.data for planes in chains for plane in planes], dtype=np.uintp)
        self._call("twin_branches", rows, links, len(chains), chains[0][0].size, self._team(), count)

    def affine(self, x: np.ndarray, y: np.ndarray, a: float, b: float, count: int) -> None:
        self._call("twin_affine", x, y, a, b, x.size, self._team(), count)

    def affine_streamed(self, x: np.ndarray, y: np.ndarray, a: float, b: float) -> None:
        self._call("twin_affine_streamed", x, y, a, b, x.size, self._team())

    def step_damped(self, p: dict[str, np.ndarray], method: int, dt: float, damping: float, copies: int = 0) -> None:
        arrays = [p[name] for name in ("x", "v", "t", "omega", "t_end", "done")]
        team, together = self._team(), ctypes.c_int(copies or self.vectors_at_once)
        self._call("twin_step_damped", *arrays, p["x"].size, ctypes.c_int(method), dt, damping, team, together)

    def step_two_body(self, p: dict[str, np.ndarray], h: float, copies: int) -> None:
        arrays = [p[name] for name in ("r", "v", "t", "t_end", "done")]
        self._call("twin_step_two_body", *arrays, p["t"].size, h, self._team(), ctypes.c_int(copies))

    def mixed(self, library: str, x: np.ndarray, y: np.ndarray) -> bool:
        """``library``: libmvec or sleef. False where this build has none: nothing was done."""
        return bool(self._call(f"twin_mixed_{library}", x, y, x.size, self._team()))

    def two_body_adjoint(self, p: dict[str, np.ndarray], found: list[np.ndarray], h: float, count: int) -> None:
        arrays = [p[name] for name in ("r", "v", "bar_r1", "bar_v1")]
        self._call("twin_two_body_adjoint", *arrays, *found, p["r"].shape[1], h, self._team(), count)

    def sum(self, x: np.ndarray, count: int = 1, threads: int | None = None) -> float:
        return float(self._call("twin_sum", x, x.size, self._team(threads), count))

    def scatter_serial(self, x: np.ndarray, key: np.ndarray, h: np.ndarray) -> None:
        self._call("twin_scatter_serial", x, key, x.size, h)

    def scatter_tiled(self, x: np.ndarray, key: np.ndarray, h: np.ndarray) -> None:
        self._call("twin_scatter_tiled", x, key, x.size, h, h.size, self._team())

    def fill(self, x: np.ndarray, value: float) -> None:
        self._call("twin_fill", x, x.size, value)
