"""Work that a program has captured on a GPU as a part of a step, on the fake driver: in process within the run's one
CUDA graph, through a daemon replayed by the program.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import eagle
import numpy as np
import pytest
from eagle import _core
from eagle.graph import child, current_stream, opaque
from gpu_package import CapturedGraph, Package, address

GPU = "cuda:0"
N = 23

pytestmark = pytest.mark.usefixtures("fake_gpus")


@pytest.fixture
def session(gpu_session: eagle.Session) -> eagle.Session:
    return gpu_session


@eagle.kernel
def steer(x: eagle.Mutable[eagle.Scalar], f: eagle.Scalar, limit: eagle.Scalar, done: eagle.Terminated):
    x = x + f
    done = x >= limit


def planes(session: eagle.Session, **where: str) -> dict[str, Any]:
    """Some of them are finished before the run begins."""
    return {
        "x": session.asarray(np.linspace(0.0, 1.0, N), **where),
        "f": session.zeros(N, **where),
        "limit": session.asarray(2.0 + np.arange(N) % 5, **where),
        "done": session.asarray(np.arange(N) % 7 == 3, **where),
    }


def policy(package: Package, over: dict[str, Any], a: float = 0.5, b: float = 0.25) -> Callable[[], None]:
    """Enqueues f = a x + b."""
    return lambda: package.affine(address(over["x"]), address(over["f"]), a, b, N, current_stream())


def part(over: dict[str, Any], fn: Callable[..., Any], **how: Any) -> Any:
    return opaque(fn, reads={"x": over["x"]}, writes={"f": over["f"]}, name="policy", **how)


def on_the_cpu(a: float, b: float, max_steps: int) -> tuple[eagle.SimResult, dict[str, Any]]:
    with eagle.local() as session:
        over = planes(session)

        def fn() -> None:
            over["f"][...] = a * over["x"] + b

        found = eagle.until_done([part(over, fn), eagle.plan(steer)], max_steps=max_steps, **over).run()
        return found, {name: np.array(array) for name, array in over.items()}


def expect_as_on_the_cpu(found: eagle.SimResult, over: dict[str, Any], a: float, b: float, max_steps: int) -> None:
    wanted, arrays = on_the_cpu(a, b, max_steps)
    assert (found.status, found.steps, found.report.finished) == (
        wanted.status,
        wanted.steps,
        wanted.report.finished,
    )
    for name, array in arrays.items():
        assert over[name].numpy().tobytes() == array.tobytes(), name


def schedule_of(session: eagle.Session) -> str:
    return "host_loop: the client has a part in the step" if session._core.remote else "cuda_graph"


class Replayed(CapturedGraph):
    """What a daemon needs, too."""

    replays = 0

    def replay(self) -> None:
        self.replays += 1
        self.package.launch_graph(self.raw_cuda_graph(), self.package.stream())


@pytest.mark.parametrize("max_steps", [1, 3, 100])
@pytest.mark.parametrize("kind", ["captured", "without_parameters", "child"])
def test_a_captured_part_runs_once_a_step_with_the_cpus_bits(
    session: eagle.Session, package: Package, kind: str, max_steps: int
) -> None:
    over = planes(session, device=GPU)
    calls: list[int] = []
    enqueue = policy(package, over)

    def fn(**given: Any) -> None:
        assert all(type(array) is eagle.Plane for array in given.values())
        calls.append(1)
        enqueue()

    if kind == "child":
        owner = Replayed(package, over["x"], over["f"], 0.5, 0.25)
        model = child(owner, reads={"x": over["x"]}, writes={"f": over["f"]}, name="policy")
    else:
        model = part(over, fn, captured=True) if kind == "captured" else part(over, lambda: fn())
    found = eagle.until_done([model, eagle.plan(steer)], max_steps=max_steps, **over).run()
    assert found.report.schedule == schedule_of(session)
    expect_as_on_the_cpu(found, over, 0.5, 0.25, max_steps)
    if kind == "child":
        assert owner.replays == (found.steps if session._core.remote else 0)
    else:
        assert len(calls) == 1  # once, and replayed
    if not session._core.remote:
        assert found.report.launches == 1  # the host looks once


def test_parts_run_in_the_order_of_the_list(session: eagle.Session, package: Package) -> None:
    x, f = session.full(4, 1.0, device=GPU), session.zeros(4, device=GPU)
    limit, done = session.full(4, 1e300, device=GPU), session.zeros(4, dtype=bool, device=GPU)

    def times(a: float, b: float) -> Any:
        at = address(f)
        return opaque(lambda: package.affine(at, at, a, b, 4, current_stream()), reads={"f": f}, writes={"f": f})

    step = [times(2.0, 1.0), times(3.0, 0.0), eagle.plan(steer), times(1.0, 0.5)]
    runner = eagle.until_done(step, max_steps=3, x=x, f=f, limit=limit, done=done)
    assert runner.run().steps == 3
    wanted_x, wanted_f = 1.0, 0.0
    for _ in range(3):
        wanted_f = 3.0 * (2.0 * wanted_f + 1.0)
        wanted_x += wanted_f
        wanted_f += 0.5
    assert (x.numpy().tolist(), f.numpy().tolist()) == ([wanted_x] * 4, [wanted_f] * 4)


def test_rows_and_looks_come_between_as_they_do(local: eagle.Session, package: Package) -> None:
    over = planes(local, device=GPU)
    over["limit"][...] = np.full(N, 1e300)
    looks: list[int] = []
    step = [part(over, policy(package, over, 0.0, 1.0)), eagle.plan(steer)]
    found = eagle.simulate(step, max_steps=20, until=lambda: looks.append(1), every=10, record="x", **over)
    assert (found.status, found.steps, found.report.schedule) == ("max_steps", 20, "cuda_graph")
    live = ~over["done"].numpy()
    rows = [np.linspace(0.0, 1.0, N)[live]]
    for _ in range(20):
        rows.append(rows[-1] + 1.0)
    assert np.array_equal(found.records["x"].numpy()[:, live], rows[::10])
    assert len(looks) == 2


HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_what_no_loop_of_the_device_may_have_makes_it_the_hosts(local: eagle.Session, package: Package) -> None:
    over = planes(local, device=GPU)
    called: list[int] = []
    count = HostFunction(lambda _: called.append(1))
    enqueue = policy(package, over)

    def fn() -> None:
        enqueue()
        package.call_host(count, current_stream())

    found = eagle.until_done([part(over, fn), eagle.plan(steer)], max_steps=50, **over).run()
    assert re.match(r"host_loop: what was captured .* a node of CUgraphNodeType", found.report.schedule)
    assert len(called) == found.steps
    expect_as_on_the_cpu(found, over, 0.5, 0.25, 50)


def test_a_second_run_has_what_its_owner_captured_since(session: eagle.Session, package: Package) -> None:
    over = planes(session, device=GPU)
    owner = Replayed(package, over["x"], over["f"], 0.0, 1.0)
    step = [child(owner, reads={"x": over["x"]}, writes={"f": over["f"]}), eagle.plan(steer)]
    runner = eagle.until_done(step, max_steps=1, **over)
    runner.run()
    first = over["x"].numpy()
    owner.reset()
    owner.capture(over["x"], over["f"], 0.0, 0.125)
    runner.run()
    live = ~over["done"].numpy()
    assert np.array_equal((over["x"].numpy() - first)[live], np.full(int(live.sum()), 0.125))


# ---- refusals


def spoils(package: Package, over: dict[str, Any], how: str) -> Callable[[], None]:
    enqueue = policy(package, over)

    def fn() -> None:
        if how != "enqueues nothing":
            enqueue()
        if how == "allocates":
            package.allocate()
        elif how == "waits":
            package.wait(current_stream())
        elif how == "reads":
            over["x"].numpy()

    return fn


@pytest.mark.parametrize("how", ["allocates", "waits", "reads", "enqueues nothing"])
def test_what_breaks_a_capture_is_refused_by_name(session: eagle.Session, package: Package, how: str) -> None:
    over = planes(session, device=GPU)
    runner = eagle.until_done([part(over, spoils(package, over, how)), eagle.plan(steer)], max_steps=9, **over)
    name = "" if session._core.remote else "node 'policy': "
    with pytest.raises(eagle.GraphState, match=f"{name}it cannot be captured as part of a CUDA graph"):
        runner.run()
    if not session._core.remote:
        assert over["x"].numpy().tobytes() == np.linspace(0.0, 1.0, N).tobytes()  # nothing ran


def test_what_a_captured_callable_raises_itself_is_raised(session: eagle.Session) -> None:
    over = planes(session, device=GPU)

    def fails() -> None:
        raise ZeroDivisionError("of its own")

    with pytest.raises(ZeroDivisionError, match="of its own"):
        eagle.until_done([part(over, fails), eagle.plan(steer)], max_steps=9, **over).run()


def test_an_owner_that_was_reset_is_refused_by_name(local: eagle.Session, package: Package) -> None:
    over = planes(local, device=GPU)
    owner = CapturedGraph(package, over["x"], over["f"])
    model = child(owner, reads={"x": over["x"]}, writes={"f": over["f"]}, name="policy")
    runner = eagle.until_done([model, eagle.plan(steer)], max_steps=9, **over)
    owner.reset()
    with pytest.raises(eagle.GraphState, match="node 'policy': its owner has no CUDA graph now; capture one, and run"):
        runner.run()


@pytest.mark.parametrize("again", [False, True], ids=["reset", "captured_again"])
def test_an_owner_that_is_reset_within_the_run_ends_it_by_name(
    local: eagle.Session, package: Package, again: bool
) -> None:
    over = planes(local, device=GPU)
    over["limit"][...] = np.full(N, 1e300)
    owner = CapturedGraph(package, over["x"], over["f"])
    model = child(owner, reads={"x": over["x"]}, writes={"f": over["f"]}, name="policy")

    def until() -> bool:
        owner.reset()
        if again:
            owner.capture(over["x"], over["f"], 2.0)
        return False

    said = f"node 'policy': its owner was {'captured again' if again else 'reset'} within the run"
    with pytest.raises(eagle.EagleError, match=said):
        eagle.simulate([model, eagle.plan(steer)], max_steps=30, until=until, every=10, **over)


def test_an_array_that_has_moved_since_is_refused_by_its_name(
    session: eagle.Session, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = planes(session, device=GPU)
    owner = Replayed(package, over["x"], over["f"])
    model = child(owner, reads={"x": over["x"]}, writes={"f": over["f"]})
    runner = eagle.until_done([model, eagle.plan(steer)], max_steps=9, **over)
    found = _core.on_device
    monkeypatch.setattr(_core, "on_device", lambda *about: (found(*about)[0] + 256, *found(*about)[1:]))
    with pytest.raises(eagle.EagleError, match=r"child: 'x' lies at another address .* capture it again"):
        runner.run()
    assert owner.replays == 0


@pytest.mark.parametrize("how", ["stream", "eager"])
def test_other_tiers_are_refused_with_the_way_out(session: eagle.Session, how: str) -> None:
    over = planes(session, device=GPU)
    node = part(over, lambda x, f: None, **({"stream": 0} if how == "stream" else {"eager": True}))
    with pytest.raises(eagle.EagleError, match=r"node 'policy' .* cannot run inside a stepping loop; take some steps"):
        eagle.until_done([node, eagle.plan(steer)], max_steps=9, **over)


def test_a_submitted_run_calls_nobody(session: eagle.Session, package: Package) -> None:
    over = planes(session, device=GPU)
    with pytest.raises(eagle.GraphState, match="a submitted run outlives its client, who cannot be called"):
        eagle.submit([part(over, policy(package, over)), eagle.plan(steer)], max_steps=9, **over)


# ---- gradients


@pytest.mark.parametrize("kind", ["captured", "child"])
def test_a_run_that_is_gone_back_over_knows_what_each_step_read(
    session: eagle.Session, package: Package, kind: str
) -> None:
    def derivative(primals: Any, cotangents: Any) -> dict[str, np.ndarray]:
        return {"x": np.asarray(primals["x"]) * np.asarray(cotangents["f"])}  # by what it read

    def gradient(over: dict[str, Any], model: Any) -> bytes:
        made = eagle.diff.until_done([model, eagle.plan(steer)], max_steps=9, **over)
        made.run()
        return bytes(np.asarray(eagle.diff.reverse(made.record, {"x": np.ones(N)}, vjps={"policy": derivative})["x"]))

    with eagle.local() as host:
        here = planes(host)

        def fn() -> None:
            here["f"][...] = 0.5 * here["x"] + 0.25

        wanted = gradient(here, part(here, fn))
    over = planes(session, device=GPU)
    owner = Replayed(package, over["x"], over["f"], 0.5, 0.25)
    model = child(owner, reads={"x": over["x"]}, writes={"f": over["f"]}, name="policy")
    if kind == "captured":
        model = part(over, policy(package, over))
    assert gradient(over, model) == wanted
