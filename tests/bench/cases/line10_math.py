"""sin(x) exp(-x x) + log1p(|x|) tanh(x) + |x|^0.3 over 1e7 numbers.

The limit is libmvec, whose functions are right to 4 ulp; ours must be right to 1. Each of ours is compared with long
double first, over the numbers of the row; SLEEF's functions of 1 ulp are shown where they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import void
from cases.inputs import aligned, reals
from eagle import Scalar, kernel
from frame import DAEMON, IN_PROCESS, LIMIT, OTHER, Bench, Bound, Form, Row, WrongAnswer

LINE = 10
TITLE = "sin(x) exp(-x x) + log1p(|x|) tanh(x) + |x|^0.3, 1e7"
EXPONENT = 0.3


@kernel
def mixed(x: Scalar) -> Scalar:
    size = abs(x)
    y = (
        eagle.math.sin(x) * eagle.math.exp(-x * x)
        + eagle.math.log1p(size) * eagle.math.tanh(x)
        + eagle.math.pow(size, EXPONENT)
    )
    return y  # noqa: RET504  # it names the plane


@kernel
def apart(x: Scalar) -> dict[str, Scalar]:
    size = abs(x)
    return {
        "sin": eagle.math.sin(x),
        "exp": eagle.math.exp(-x * x),
        "log1p": eagle.math.log1p(size),
        "tanh": eagle.math.tanh(x),
        "pow": eagle.math.pow(size, EXPONENT),
    }


EXACT: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "exp": lambda x: np.exp(-(x.astype(np.float64) * x.astype(np.float64)).astype(np.longdouble)),
    "log1p": lambda x: np.log1p(np.abs(x)),
    "tanh": np.tanh,
    "pow": lambda x: np.power(np.abs(x), np.longdouble(EXPONENT)),
}


def worst_ulp(session: Any) -> float:
    """The largest error of any of the functions, in units of the last place of the exact result."""
    x = reals(20_000)
    found = apart(session.asarray(x), session=session)
    wide = x.astype(np.longdouble)
    worst = 0.0
    for name, exact in EXACT.items():
        wanted = exact(wide)
        ulp = np.spacing(np.abs(wanted.astype(np.float64)))
        error = float(np.max(np.abs(found[name].astype(np.longdouble) - wanted) / ulp))
        if not error < 1.0:
            raise WrongAnswer(f"{name}: off by {error:.3f} ulp; expected less than 1")
        worst = max(worst, error)
    return worst


def form(name: str, session: Any, n: int) -> Form:
    x, y = session.asarray(reals(n)), session.zeros(n)
    g = eagle.Graph(session).add(eagle.plan(mixed).bind(x=x, y=y)).build()
    return Form(name, lambda: void(g.launch()), answer=lambda: [y])


def library_form(bench: Bench, name: str, library: str, kind: str, n: int) -> Form:
    x, y = reals(n), aligned(n)
    return Form(name, lambda: void(bench.twins.mixed(library, x, y)), kind, answer=lambda: [y], tolerance=4e-15)


def rows(bench: Bench) -> Iterator[Row]:
    n = bench.size(10_000_000, 4096)
    bench.say(f"each of the five functions is right to {worst_ulp(bench.here):.3f} ulp; libmvec promises 4")
    forms = [form(name, session, n) for name, session in bench.sessions()]
    forms.append(library_form(bench, "C++ twin, libmvec", "libmvec", LIMIT, n))
    trial = aligned(8)
    if bench.twins.mixed("sleef", reals(8), trial):
        forms.append(library_form(bench, "C++ loop, SLEEF 1 ulp", "sleef", OTHER, n))
    forms += bench.peers("mixed", 1e-13, ("raptor-eagle", "numba", "jax"), n=n)
    yield Row(f"{n:,} numbers", forms, [Bound(name, 1.25, LIMIT) for name in (IN_PROCESS, DAEMON)])
