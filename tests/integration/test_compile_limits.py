"""A compile that would take minutes is stopped: its client hears why, everybody else is served on."""

import os
import signal
import threading

import eagle
import numpy as np
import pytest
from eagle import Param, Scalar, kernel
from harness import PATIENCE_S, Daemon, children, wait_until
from models import affine

# Straight-line code of 15,000 operations, nearly as many as a kernel may have.
heavy = kernel(
    source="def heavy(a: Matrix[8, 8], b: Matrix[8, 8]) -> Matrix[8, 8]:\n    p = a\n"
    + 14 * "    p = p @ b\n"
    + "    return p\n"
)


@kernel
def shifted(x: Scalar, by: Param) -> Scalar:
    return x + by


# Seconds by the wall: ordinary kernels, and the start of the helper, have to be done by then on a machine that
# is busy with other things.
LIMIT_S = 10


@pytest.fixture
def hasty(short_path):
    """A daemon that gives a compile that long."""
    daemon = Daemon(short_path, "--compile-timeout", str(LIMIT_S), "--cache-dir", "")
    yield daemon
    assert daemon.stop() == 0, daemon.log()


def helpers(daemon: Daemon) -> list[int]:
    return children(daemon.pid)


def check_affine(endpoint: str) -> None:
    with eagle.connect(endpoint) as session:
        x, y = session.asarray(np.arange(5.0)), session.zeros(5)
        eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0).launch()
        assert y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_a_compile_without_end_is_given_up_and_named(hasty):
    check_affine(hasty.endpoint)
    (helper,) = helpers(hasty)
    with eagle.connect(hasty.endpoint) as session:
        x = session.zeros(8)
        os.kill(helper, signal.SIGSTOP)  # never done
        with pytest.raises(eagle.EagleError, match=rf"'shifted'.*took longer than {LIMIT_S}") as refusal:
            shifted(x, 1.0)
        assert refusal.value.reason == "COMPILE_FAILED"
        wait_until(lambda: helper not in helpers(hasty), "the helper that hung to be gone")
        assert shifted(x, 1.0).tolist() == [1.0] * 8  # the same session, a new helper
    check_affine(hasty.endpoint)


def test_others_are_served_while_a_long_compile_goes_on(hasty):
    with eagle.connect(hasty.endpoint) as session:
        a, b = session.full((64, 100), 0.01), session.full((64, 100), 0.01)
        outcome: list[object] = []

        def compile_it() -> None:
            try:
                outcome.append(heavy(a, b))
            except eagle.EagleError as error:
                outcome.append(error)

        waiting = threading.Thread(target=compile_it)
        waiting.start()
        wait_until(lambda: bool(helpers(hasty)), "the helper for large kernels to start")
        check_affine(hasty.endpoint)
        waiting.join(PATIENCE_S)
        assert not waiting.is_alive()
    # A fast machine may make it in time; then the values are right: each product of matrices that are c
    # everywhere is 8 c d everywhere.
    (ended,) = outcome
    if isinstance(ended, eagle.EagleError):
        assert ended.reason == "COMPILE_FAILED"
        assert "'heavy'" in str(ended)
        assert f"took longer than {LIMIT_S}" in str(ended)
    else:
        np.testing.assert_allclose(ended, 0.01 * (8 * 0.01) ** 14, rtol=1e-12)
    check_affine(hasty.endpoint)
