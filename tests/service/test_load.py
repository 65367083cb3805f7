"""Many clients, and much coming and going."""

import json
import os
import subprocess
from pathlib import Path

import eagle
import pytest
from harness import python_script
from models import affine
from watch import held_by, keeper_of, wait_for_at_most, wait_for_descriptors, wait_for_nothing_held, worker_of

CROWD = Path(__file__).with_name("crowd.py")
PROCESSES, SESSIONS_EACH, LAUNCHING_EACH = 5, 200, 40
SECONDS = 60 if os.environ.get("EAGLE_LONG") else 5


def tell(clients) -> None:
    """Lets all of them go on."""
    for client in clients:
        client.stdin.write("go on\n")
        client.stdin.flush()


@pytest.mark.survives("1,000 sessions, 200 of them launching: no launch lost or doubled")
@pytest.mark.timeout(600)
def test_a_thousand_sessions(daemon, measured):
    worker, keeper = worker_of(daemon), keeper_of(daemon)
    before, kept_before = held_by(worker), held_by(keeper)
    clients = [
        python_script(
            CROWD,
            str(SESSIONS_EACH),
            str(LAUNCHING_EACH),
            str(SECONDS),
            environment={"EAGLE_ENDPOINT": daemon.endpoint},
            stdin=subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    try:
        for client in clients:
            assert client.stdout.readline() == "ready\n", client.stderr.read()
        assert int(daemon.info()["sessions"]) >= PROCESSES * SESSIONS_EACH
        full, kept = held_by(worker), held_by(keeper)
        tell(clients)
        results = [json.loads(client.stdout.readline() or "null") for client in clients]
        # Launching takes no descriptors and, but for the outcomes that sessions keep, no memory.
        busy = wait_for_at_most(worker, full.descriptors + 4, full.resident_kib + 64 * 1024)
        wait_for_at_most(keeper, kept.descriptors + 4, kept.resident_kib + 4 * 1024)
        tell(clients)
        for client in clients:
            assert client.wait() == 0, client.stderr.read()
    finally:
        for client in clients:
            client.kill()
            client.wait()
            for stream in (client.stdin, client.stdout, client.stderr):
                stream.close()
    assert [wrong for result in results for wrong in result["wrong"]] == []
    wait_for_nothing_held(daemon)
    wait_for_descriptors(worker, before.descriptors + 4)
    # What the journal says of a thousand sessions is a few MiB, which it may keep as room for the next ones.
    room_kib = max(kept.resident_kib, kept_before.resident_kib + 4 * 1024)
    left = wait_for_at_most(keeper, kept_before.descriptors + 4, room_kib)
    launches, median, p99 = (
        sum(r["launches"] for r in results),
        *(max(r[k] for r in results) for k in ("median_us", "p99_us")),
    )
    measured(f"{launches} launches in {SECONDS} s from 200 sessions: median {median:.0f} us, p99 {p99:.0f} us")
    measured(
        f"the worker held {full.resident_kib // 1024} MiB and {full.descriptors} descriptors, "
        f"{busy.resident_kib // 1024} MiB and {busy.descriptors} after the launches"
    )
    measured(
        f"the keeper held {kept_before.resident_kib} KiB and {kept_before.descriptors} descriptors at first, "
        f"{kept.resident_kib} and {kept.descriptors} with all sessions, "
        f"{left.resident_kib} and {left.descriptors} after"
    )


@pytest.mark.survives("10,000 times made, built, launched and released: memory and descriptors stay flat")
@pytest.mark.timeout(600)
def test_coming_and_going(daemon, measured):
    worker, keeper = worker_of(daemon), keeper_of(daemon)
    with eagle.connect(daemon.endpoint) as session:

        def rounds(count: int) -> None:
            for number in range(count):
                x, y = session.full(1000, float(number)), session.zeros(1000)
                graph = eagle.Graph(session)
                graph.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0))
                graph.build().launch()
                assert y[999] == 2.0 * number + 1.0

        rounds(1_000)  # pools and caches fill
        first, kept = held_by(worker), held_by(keeper)
        rounds(9_000)
        last = wait_for_at_most(worker, first.descriptors + 4, first.resident_kib + 16 * 1024)
        still = wait_for_at_most(keeper, kept.descriptors + 4, kept.resident_kib + 4 * 1024)
    for whose, after_1, after_10 in (("worker", first, last), ("keeper", kept, still)):
        measured(
            f"{whose}: {after_1.resident_kib} KiB and {after_1.descriptors} descriptors after 1,000 cycles, "
            f"{after_10.resident_kib} KiB and {after_10.descriptors} after 10,000"
        )


@pytest.mark.survives("2,000 sessions one after the other: memory and descriptors stay flat")
@pytest.mark.timeout(600)
def test_sessions_one_after_the_other(daemon):
    worker, keeper = worker_of(daemon), keeper_of(daemon)

    def rounds(count: int) -> None:
        for _ in range(count):
            with eagle.connect(daemon.endpoint) as session:
                assert session.full(10, 3.0)[9] == 3.0

    rounds(300)
    first, kept = held_by(worker), held_by(keeper)
    rounds(1_700)
    wait_for_nothing_held(daemon)
    wait_for_at_most(worker, first.descriptors + 8, first.resident_kib + 16 * 1024)
    wait_for_at_most(keeper, kept.descriptors + 4, kept.resident_kib + 4 * 1024)
