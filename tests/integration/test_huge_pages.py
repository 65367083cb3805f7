"""Arrays in huge pages, where a client asks for them: as any other array, and the transport report tells whether."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import eagle
import pytest
from harness import Daemon
from models import affine

SETTING = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
MIB = 1 << 20
HUGE = 2 * MIB
SAMPLES = MIB  # of 8 bytes


def report(session: eagle.Session, nbytes: int) -> tuple[int, str]:
    found = [plane for plane in session.planes() if plane.nbytes >= nbytes]
    assert len(found) == 1
    assert found[0].transport == "memfd"
    return found[0].huge_bytes, found[0].why


def check_computes(session: eagle.Session, huge: bool) -> tuple[int, str]:
    x, y = session.full(SAMPLES, 2.0), session.zeros(10)
    assert x[-1] == 2.0
    eagle.plan(affine).bind(x=x, y=x, a=3.0, b=1.0).launch()
    assert x[[0, SAMPLES // 2, -1]].tolist() == [7.0] * 3
    assert y.tolist() == [0.0] * 10
    told = report(session, x.nbytes)
    if not huge:
        assert told == (0, "")
    return told


def test_huge_pages_are_had_or_it_is_said_why_not(daemon: Daemon) -> None:
    with eagle.connect(daemon.endpoint, huge_pages=True) as session:
        huge_bytes, why = check_computes(session, True)
        assert huge_bytes % HUGE == 0
        if huge_bytes < 8 * SAMPLES // HUGE * HUGE:
            assert why.startswith("huge pages: ")
        else:
            assert why == ""


def test_nobody_has_them_who_did_not_ask(daemon: Daemon) -> None:
    with eagle.connect(daemon.endpoint) as session:
        check_computes(session, False)


@pytest.fixture
def given(request: pytest.FixtureRequest) -> Iterator[str]:
    """The system gives huge pages to who asks, or to nobody, as the test wants: a setting of the whole machine, which
    is put back. Only who asks is touched by it.
    """
    if not SETTING.exists():
        pytest.skip("this kernel has no huge pages for shared memory")
    before = SETTING.read_text().partition("[")[2].partition("]")[0]
    try:
        SETTING.write_text(request.param)
    except OSError as error:
        pytest.skip(f"the setting cannot be changed here: {error}")
    try:
        yield request.param
    finally:
        SETTING.write_text(before)


@pytest.mark.parametrize("given", ["advise"], indirect=True)
def test_a_machine_that_gives_them_is_said_to(daemon: Daemon, given: str) -> None:
    with eagle.connect(daemon.endpoint, huge_pages=True) as session:
        huge_bytes, why = check_computes(session, True)
        assert (huge_bytes, why) == (8 * SAMPLES // HUGE * HUGE, "") or "smaller pieces" in why
        x = session.zeros(SAMPLES)
        assert ("huge pages" in str(session.planes())) == (report(session, x.nbytes)[0] > 0)


@pytest.mark.parametrize("given", ["never"], indirect=True)
def test_a_machine_that_gives_none_is_said_to_and_what_would_help(daemon: Daemon, given: str) -> None:
    with eagle.connect(daemon.endpoint, huge_pages=True) as session:
        huge_bytes, why = check_computes(session, True)
        assert huge_bytes == 0
        assert str(SETTING) in why
        assert "'advise'" in why
