"""How each error that the pages of the protocol name is provoked, with messages made by hand."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import hand_made
from harness import (
    Beside,
    Daemon,
    children,
    decode,
    hello,
    nested,
    number,
    side_connection,
    tcp_endpoint,
    wait_until,
)
from stubs import Service, session_at

SAMPLES = 512
BYTES = 8 * SAMPLES
LEASE_S = 600.0
CAPTURED = 1  # HostTier: in the thread that steps
LONG = 2**50  # launches or steps: nobody waits for their end


class World:
    """A daemon, and one session there."""

    def __init__(self, daemon: Daemon, service: Service) -> None:
        self.daemon, self.service, self.message = daemon, service, service.message
        self.call, self.send = service.call, service.send
        self._ids = 0
        self.gone = service.message("PlaneRef")(id=987_654, generation=1)

    def id(self) -> int:
        self._ids += 1
        return self._ids

    # ---- things to name

    def plane(self, bytes_: int = BYTES) -> Any:
        return self.call("Planes.Create", planes=[{"bytes": bytes_}]).planes[0].ref

    def view(self, samples: int = SAMPLES, **fields: Any) -> Any:
        made = hand_made.view(self.service, 0, samples)
        for name, value in fields.items():
            if isinstance(value, list):
                del getattr(made, name)[:]
                getattr(made, name).extend(value)
            else:
                setattr(made, name, value)
        return made

    def slice(self, plane: Any = None, **fields: Any) -> dict[str, Any]:
        return {"plane": plane or self.plane(), "view": self.view(**fields)}

    def described(self, plane: Any = None, host: bool = False) -> Any:
        return hand_made.adding_graph(self.service, plane or self.plane(), SAMPLES, host_call=host)

    def graph(self, plane: Any = None, host: bool = False) -> int:
        return self.call("Graphs.Build", graph=self.described(plane, host)).graph

    def run(self, plane: Any = None, steps: int = 5, host: bool = False) -> Any:
        run = hand_made.counting_run(self.service, plane or self.plane(), self.plane(), SAMPLES, steps)
        if host:
            step = run.host_steps.add(before=1, every=1)
            step.node.call, step.node.tier = 7, CAPTURED
        return run

    def submitted(self, run: Any = None, **fields: Any) -> dict[str, Any]:
        kept = hand_made.kept_planes(self.service, SAMPLES)
        asked = {"run": run or self.run(), "name": "r", "lease_s": LEASE_S, "planes": kept, "mask": "done"}
        return {**asked, "attempt": b"%16d" % self.id(), **fields}

    def kept(self, steps: int = 5) -> int:
        """A submitted run; one of few steps has ended."""
        run = self.call("Runs.Submit", **self.submitted(self.run(steps=steps))).run
        while steps != LONG and not self.call("Runs.Get", run=run).ended:
            time.sleep(0.01)
        return run

    def fetched(self, run: int = 0, **fields: Any) -> dict[str, Any]:
        into = hand_made.kept_planes(self.service, SAMPLES)
        planes = [hand_made.declared(self.service, self.plane(), BYTES) for _ in into]
        return {"run": run or self.kept(), "planes": planes, "into": into, **fields}

    # ---- things that go on

    def talk(self, method: str, *messages: Any, close: bool = False) -> tuple[queue.Queue[Any], Any]:
        """A conversation that has begun with these; None in the queue closes the client's side."""
        requests: queue.Queue[Any] = queue.Queue()
        for one in (*messages, *([None] if close else [])):
            requests.put(one)
        return requests, self.service.converse(method, iter(requests.get, None))

    def launching(self, host: bool = False, plane: Any = None, **fields: Any) -> Any:
        asked = {"graph": self.graph(plane, host), "count": 1, "launch_id": self.id(), **fields}
        return self.message("LaunchClientMessage")(launch=asked)

    def simulating(self, **fields: Any) -> Any:
        asked = {"run": self.run(host=True), "launch_id": self.id(), **fields}
        return self.message("SimulateClientMessage")(simulate=asked)

    @contextlib.contextmanager
    def busy(self) -> Iterator[int]:
        """A graph that runs a launch."""
        graph, launch = self.graph(), self.id()
        running = Beside(lambda: self.call("Graphs.Launch", graph=graph, count=LONG, launch_id=launch))
        while not self.call("Admin.Info").jobs and not running.ended():
            time.sleep(0.005)
        try:
            yield graph
        finally:
            self.call("Graphs.Cancel", launch_id=launch)
            running.result()

    def torn(self) -> Any:
        """A plane that a launch left half written."""
        plane = self.plane()
        with contextlib.suppress(grpc.RpcError):
            self.fail_call("Graphs.LaunchWithCalls", self.launching(host=True, plane=plane))
        return plane

    def fail_call(self, method: str, begin: Any, **reply: Any) -> None:
        """A host call that the client says has failed, or answers otherwise."""
        requests, replies = self.talk(method, begin)
        call = next(one for one in replies if one.HasField("call")).call
        answer = {"sequence": call.sequence, "ok": False, "error": "it raised", **reply}
        requests.put(type(begin)(reply=answer))
        requests.put(None)
        for _ in replies:
            pass


@contextlib.contextmanager
def attached(daemon: Daemon, **open_: Any) -> Iterator[World]:
    """A session over TCP whose client nobody knows."""
    with grpc.insecure_channel(tcp_endpoint(daemon).removeprefix("dns:")) as channel:
        nobody = World.__new__(World)
        World.__init__(nobody, daemon, Service(channel, ""))
        requests, replies = nobody.talk("Sessions.Attach", attach(nobody, **open_))
        hello = next(replies).hello
        yield World(daemon, Service(channel, hello.secret.hex()))
        requests.put(nobody.message("AttachClientMessage")(close={}))
        requests.put(None)


def attach(world: World, low: int = 1, high: int = 1, name: str = "test", **open_: Any) -> Any:
    hello = {"protocol": {"min": low, "max": high}, "client_name": name}
    return world.message("AttachClientMessage")(open={"hello": hello, **open_})


class Worlds:
    """Of one daemon: a session of an admin over the unix socket, and sessions of people that nobody knows over TCP."""

    def __init__(self, daemon: Daemon, stack: contextlib.ExitStack) -> None:
        self.daemon = daemon
        self.ours = World(daemon, stack.enter_context(session_at(daemon.path)))
        self.theirs = stack.enter_context(attached(daemon))
        self.others = stack.enter_context(attached(daemon))

    def read_only(self) -> Any:
        """A plane of `theirs` that is granted for reading."""
        name = f"granted {self.ours.id()}"
        self.ours.call("Planes.Publish", slice=self.ours.slice(), name=name, to=["*"], attempt=name.encode()[:16])
        return self.theirs.call("Planes.Open", name=name).plane.ref


Provoke = Callable[[Worlds], Any]
PROVOKED: dict[tuple[str, str], Provoke] = {}


def provokes(*names: str) -> Callable[[Provoke], Provoke]:
    """Of `"Planes.Read VIEW_OUTSIDE_PLANE"`."""

    def known(function: Provoke) -> Provoke:
        for name in names:
            method, _, reason = name.partition(" ")
            assert (method, reason) not in PROVOKED, name
            PROVOKED[method, reason] = function
        return function

    return known


def provoke(name: str, function: Provoke) -> None:
    provokes(name)(function)


# ---- planes

provoke("Planes.Create BAD_VALUE", lambda w: w.ours.call("Planes.Create", planes=[{"bytes": 0}]))
provoke("Planes.Create PLANE_BUDGET", lambda w: w.ours.call("Planes.Create", planes=[{"bytes": 1 << 62}]))
provoke("Planes.Release UNKNOWN_PLANE", lambda w: w.ours.call("Planes.Release", planes=[w.ours.gone]))
provoke("Planes.Withdraw UNKNOWN_NAME", lambda w: w.ours.call("Planes.Withdraw", name="never published"))
provoke("Planes.Open UNKNOWN_NAME", lambda w: w.ours.call("Planes.Open", name="never published"))


def _with_slice(world: World, method: str, slice_: Any, data: bytes = bytes(8)) -> Any:
    if method == "Planes.Accept":
        return world.call(method, parts=[slice_])
    if method == "Planes.Write":
        return world.send(method, world.message("WriteRequest")(slice=slice_, data=data))
    more = {
        "Planes.Read": {},
        "Planes.Fill": {"element": data},
        "Planes.Publish": {"name": f"name {world.id()}", "attempt": b"1"},
    }
    return world.call(method, slice=slice_, **more[method])


for _method in ("Planes.Accept", "Planes.Read", "Planes.Write", "Planes.Fill", "Planes.Publish"):
    provoke(f"{_method} UNKNOWN_PLANE", lambda w, m=_method: _with_slice(w.ours, m, w.ours.slice(w.ours.gone)))
    provoke(
        f"{_method} VIEW_OUTSIDE_PLANE", lambda w, m=_method: _with_slice(w.ours, m, w.ours.slice(samples=SAMPLES + 1))
    )
    provoke(f"{_method} BAD_VALUE", lambda w, m=_method: _with_slice(w.ours, m, w.ours.slice(strides=[8, 8])))
for _method in ("Planes.Write", "Planes.Fill"):
    provoke(f"{_method} READ_ONLY_ARRAY", lambda w, m=_method: _with_slice(w.theirs, m, w.theirs.slice(w.read_only())))
provoke("Planes.Write BAD_MESSAGE", lambda w: w.ours.talk("Planes.Write", close=True)[1])


@provokes("Planes.Open BAD_VALUE")
def _several_owners(worlds: Worlds) -> None:
    for world in (worlds.theirs, worlds.others):
        world.call("Planes.Publish", slice=world.slice(), name="both", to=["*"], attempt=b"1")
    worlds.ours.call("Planes.Open", name="both")


# ---- graphs

_LOOKS = ("Edges", "Picture", "Explain", "Inspect", "Describe", "ListKernel", "Timeline", "Verify")
for _method in (*_LOOKS, "Release", "Restore", "Update"):
    _more: dict[str, Any] = {"Picture": {"format": 1}, "Explain": {"node": {"index": 0}}}.get(_method, {})
    if _method == "ListKernel":
        _more = {"kernel": 0, "form": 1}
    provoke(
        f"Graphs.{_method} UNKNOWN_GRAPH",
        lambda w, m=_method, more=_more: w.ours.call(f"Graphs.{m}", graph=987_654, **more),
    )
provoke(
    "Graphs.Rebind UNKNOWN_GRAPH",
    lambda w: w.ours.call("Graphs.Rebind", graph=987_654, description=w.ours.described()),
)
provoke("Graphs.Picture BAD_VALUE", lambda w: w.ours.call("Graphs.Picture", graph=w.ours.graph(), format=99))
provoke("Graphs.Explain BAD_VALUE", lambda w: w.ours.call("Graphs.Explain", graph=w.ours.graph(), node={"index": 99}))
provoke("Graphs.Explain BAD_MESSAGE", lambda w: w.ours.call("Graphs.Explain", graph=w.ours.graph(), node={}))
provoke(
    "Graphs.ListKernel BAD_VALUE", lambda w: w.ours.call("Graphs.ListKernel", graph=w.ours.graph(), kernel=9, form=1)
)
provoke("Graphs.Verify BAD_VALUE", lambda w: w.ours.call("Graphs.Verify", graph=w.ours.graph(), launches=-1))
provoke("Graphs.Verify SYSTEM", lambda w: w.ours.call("Graphs.Verify", graph=w.ours.graph()))  # there is no driver
provoke("Graphs.ListKernel BAD_MESSAGE", lambda w: w.ours.call("Graphs.ListKernel", graph=w.ours.graph(), form=1))


@provokes("Graphs.Build PLANE_BUDGET")
def _vast_scratch(worlds: Worlds) -> None:
    world, samples = worlds.ours, 1 << 50
    graph = world.message("GraphDescription")(name="vast")
    graph.planes.add(bytes=8 * samples, label="s", scratch={})
    graph.planes.append(hand_made.declared(world.service, world.plane(), BYTES, "x"))
    whole, part = hand_made.view(world.service, 0, samples), hand_made.view(world.service, 0, SAMPLES)
    one = world.view(plane=1, shape=[samples], strides=[0])
    graph.stages.add(node={"copy": {"source": one, "destination": whole}})
    graph.stages.add(node={"copy": {"source": part, "destination": world.view(plane=1)}})
    world.call("Graphs.Build", graph=graph)


LAUNCHES = ("Graphs.Launch", "Graphs.LaunchWithCalls", "Graphs.Enqueue")


def _launch(world: World, method: str, **fields: Any) -> Any:
    fields = {"graph": 0, "count": 1, "launch_id": world.id(), **fields}
    if method == "Graphs.LaunchWithCalls":
        return world.send(method, world.message("LaunchClientMessage")(launch=fields))
    return world.call(method, **fields)


def _busy_launch(worlds: Worlds, method: str) -> None:
    with worlds.ours.busy() as graph:
        _launch(worlds.ours, method, graph=graph)


def _launch_of_released(worlds: Worlds, method: str) -> None:
    world = worlds.ours
    plane = world.plane()
    graph = world.graph(plane)
    world.call("Planes.Release", planes=[plane])
    _launch(world, method, graph=graph)


def _forgotten_launch(worlds: Worlds, method: str) -> None:
    world = worlds.others
    graph, first = world.graph(), world.id()
    for _ in range(1100):
        _launch(world, "Graphs.Launch", graph=graph, count=0)
    world.call("Graphs.Launch", graph=graph, count=0, launch_id=world.id())
    _launch(world, method, graph=graph, launch_id=first + 1)


for _method in LAUNCHES:
    provoke(f"{_method} UNKNOWN_GRAPH", lambda w, m=_method: _launch(w.ours, m, graph=987_654))
    provoke(f"{_method} BUSY", lambda w, m=_method: _busy_launch(w, m))
    provoke(f"{_method} UNKNOWN_PLANE", lambda w, m=_method: _launch_of_released(w, m))
    provoke(f"{_method} BAD_VALUE", lambda w, m=_method: _launch(w.ours, m, graph=w.ours.graph(), count=-1))
    provoke(f"{_method} OUTCOME_FORGOTTEN", lambda w, m=_method: _forgotten_launch(w, m))
for _method in ("Graphs.Launch", "Graphs.Enqueue"):
    provoke(f"{_method} GRAPH_STATE", lambda w, m=_method: _launch(w.ours, m, graph=w.ours.graph(host=True)))
for _method in ("Graphs.Launch", "Graphs.LaunchWithCalls"):
    provoke(f"{_method} PLANE_TORN", lambda w, m=_method: _launch(w.ours, m, graph=w.ours.graph(w.ours.torn())))


@provokes("Graphs.Launch CANCELLED")
def _cancelled(worlds: Worlds) -> None:
    world, launch = worlds.ours, worlds.ours.id()
    graph = world.graph()
    running = Beside(lambda: world.call("Graphs.Launch", graph=graph, count=LONG, launch_id=launch))
    while not running.ended():
        world.call("Graphs.Cancel", launch_id=launch)
        time.sleep(0.01)
    raise running.result()


provoke(
    "Graphs.LaunchWithCalls HOST_CALL_FAILED",
    lambda w: w.ours.fail_call("Graphs.LaunchWithCalls", w.ours.launching(host=True)),
)
provoke(
    "Graphs.LaunchWithCalls BAD_MESSAGE",
    lambda w: w.ours.send("Graphs.LaunchWithCalls", w.ours.message("LaunchClientMessage")()),
)


def _update(world: World, name: str = "by", graph: int = 0, **value: Any) -> Any:
    params = [{"argument": {"name": name}, "value": value}]
    return world.call("Graphs.Update", graph=graph or _counting_graph(world), params=params)


def _counting_graph(world: World) -> int:
    """x += by, of integers, and a condition that nobody looks at."""
    integer = 3  # I64, of a scalar and of an element
    described = world.described()
    kernel = described.kernels[0]
    for argument in kernel.arguments:
        argument.type.scalar = integer
    kernel.arguments.add(name="flag", role=hand_made.PARAM, type={"scalar": hand_made.BOOL})
    kernel.body.yields[:] = [3]  # behind the arguments
    launch = described.stages[0].node.kernel
    launch.bindings.add(argument="flag", param={"integer": 0})
    launch.bindings[0].view.dtype = integer
    launch.bindings[1].param.integer = 1
    return world.call("Graphs.Build", graph=described).graph


def _update_busy(worlds: Worlds) -> None:
    with worlds.ours.busy() as graph:
        _update(worlds.ours, graph=graph, real=2.0)


def _rebind_busy(worlds: Worlds) -> None:
    with worlds.ours.busy() as graph:
        worlds.ours.call("Graphs.Rebind", graph=graph, description=worlds.ours.described())


provoke("Graphs.Update BUSY", _update_busy)
provoke("Graphs.Update UNKNOWN_NAME", lambda w: _update(w.ours, name="nothing", integer=1))
provoke("Graphs.Update WRONG_DTYPE", lambda w: _update(w.ours, real=0.5))
provoke("Graphs.Update BAD_VALUE", lambda w: _update(w.ours, name="flag", integer=2))
provoke("Graphs.Update MALFORMED_GRAPH", lambda w: _update(w.ours))
provoke("Graphs.Rebind BUSY", _rebind_busy)
provoke(
    "Graphs.Rebind MALFORMED_GRAPH",
    lambda w: w.ours.call("Graphs.Rebind", graph=w.ours.graph(), description=w.ours.described(host=True)),
)

# ---- runs


def _simulate(world: World, method: str, run: Any) -> Any:
    asked = {"run": run, "launch_id": world.id()}
    if method == "Runs.SimulateWithCalls":
        return world.send(method, world.message("SimulateClientMessage")(simulate=asked))
    return world.call(method, **asked)


provoke("Runs.Simulate GRAPH_STATE", lambda w: _simulate(w.ours, "Runs.Simulate", w.ours.run(host=True)))
for _method in ("Runs.Simulate", "Runs.SimulateWithCalls"):
    provoke(f"{_method} PLANE_TORN", lambda w, m=_method: _simulate(w.ours, m, w.ours.run(w.ours.torn())))
provoke(
    "Runs.SimulateWithCalls HOST_CALL_FAILED",
    lambda w: w.ours.fail_call("Runs.SimulateWithCalls", w.ours.simulating()),
)
provoke(
    "Runs.SimulateWithCalls BAD_MESSAGE",
    lambda w: w.ours.send("Runs.SimulateWithCalls", w.ours.message("SimulateClientMessage")()),
)


def _submit(world: World, **fields: Any) -> Any:
    return world.call("Runs.Submit", **world.submitted(**fields))


def _submit_too_large(worlds: Worlds) -> None:
    run = worlds.ours.run()
    run.planes[0].bytes *= 2
    _submit(worlds.ours, run=run)


def _submit_private(worlds: Worlds) -> None:
    run = worlds.ours.run()
    run.planes[0].private_memory.SetInParent()
    _submit(worlds.ours, run=run)


def _submit_outside(worlds: Worlds) -> None:
    kept = hand_made.kept_planes(worlds.ours.service, SAMPLES + 1)
    _submit(worlds.ours, planes=kept)


provoke("Runs.Submit BAD_VALUE", lambda w: _submit(w.ours, lease_s=0.0))
provoke("Runs.Submit PERMISSION_DENIED", lambda w: _submit(w.theirs))
provoke("Runs.Submit GRAPH_STATE", lambda w: _submit(w.ours, run=w.ours.run(host=True)))
provoke("Runs.Submit UNKNOWN_PLANE", lambda w: _submit(w.ours, run=w.ours.run(w.ours.gone)))
provoke("Runs.Submit VIEW_OUTSIDE_PLANE", _submit_outside)
provoke("Runs.Submit PRIVATE_ARRAY", _submit_private)
provoke("Runs.Submit MALFORMED_GRAPH", _submit_too_large)
provoke("Runs.Get UNKNOWN_RUN", lambda w: w.ours.call("Runs.Get", run=987_654))
provoke("Runs.CancelRun UNKNOWN_RUN", lambda w: w.ours.call("Runs.CancelRun", run=987_654))


def _fetch(world: World, **fields: Any) -> Any:
    return world.call("Runs.Fetch", **world.fetched(**fields))


def _fetch_running(worlds: Worlds) -> None:
    run = worlds.ours.kept(LONG)
    try:
        _fetch(worlds.ours, run=run)
    finally:
        worlds.ours.call("Runs.CancelRun", run=run)


def _fetch_own(worlds: Worlds) -> None:
    """Into the very planes that the run has."""
    world = worlds.ours
    plane = world.plane()
    run = world.call("Runs.Submit", **world.submitted(world.run(plane))).run
    while not world.call("Runs.Get", run=run).ended:
        time.sleep(0.01)
    _fetch(world, run=run, planes=[hand_made.declared(world.service, plane, BYTES)] * 2)


def _fetch_into(worlds: Worlds, ref: Any, bytes_: int = BYTES) -> None:
    _fetch(worlds.ours, planes=[hand_made.declared(worlds.ours.service, ref, bytes_)] * 2)


def _renamed(view: Any, name: str) -> Any:
    view.name = name
    return view


provoke("Runs.Fetch UNKNOWN_RUN", lambda w: _fetch(w.ours, run=987_654))
provoke(
    "Runs.Fetch UNKNOWN_NAME",
    lambda w: _fetch(w.ours, into=[_renamed(view, "y") for view in hand_made.kept_planes(w.ours.service, SAMPLES)]),
)
provoke("Runs.Fetch GRAPH_STATE", _fetch_running)
provoke("Runs.Fetch UNKNOWN_PLANE", lambda w: _fetch_into(w, w.ours.gone))
provoke("Runs.Fetch MALFORMED_GRAPH", lambda w: _fetch_into(w, w.ours.plane(), 2 * BYTES))
provoke(
    "Runs.Fetch VIEW_OUTSIDE_PLANE",
    lambda w: _fetch(w.ours, into=hand_made.kept_planes(w.ours.service, SAMPLES + 1)),
)
provoke("Runs.Fetch WRONG_SHAPE", lambda w: _fetch(w.ours, into=hand_made.kept_planes(w.ours.service, SAMPLES - 1)))
provoke("Runs.Fetch PLANE_OVERLAP", _fetch_own)


def _fetch_read_only(worlds: Worlds) -> None:
    name = f"granted {worlds.theirs.id()}"
    worlds.theirs.call("Planes.Publish", slice=worlds.theirs.slice(), name=name, to=["*"], attempt=b"1")
    _fetch_into(worlds, worlds.ours.call("Planes.Open", name=name).plane.ref)


provoke("Runs.Fetch READ_ONLY_ARRAY", _fetch_read_only)


@provokes("Runs.SimulateWithCalls CANCELLED")
def _cancelled_in_its_part(worlds: Worlds) -> None:
    world, launch = worlds.ours, worlds.ours.id()
    run = world.run(host=True)
    run.host_steps[0].before = 0
    _, replies = world.talk("Runs.SimulateWithCalls", world.simulating(run=run, launch_id=launch))
    next(replies)
    world.call("Graphs.Cancel", launch_id=launch)
    next(replies)


# ---- sessions and admin


def _attach(worlds: Worlds, *messages: Any) -> None:
    nobody = worlds.theirs
    _, replies = nobody.talk("Sessions.Attach", *(messages or (attach(nobody),)))
    next(replies)


provoke("Sessions.Attach UNAUTHENTICATED", lambda w: _attach(w, attach(w.theirs, resume=b"\x5a" * 32)))
provoke("Sessions.Attach PROTOCOL_MISMATCH", lambda w: _attach(w, attach(w.theirs, 1000, 1001)))
provoke("Sessions.Attach BAD_VALUE", lambda w: _attach(w, attach(w.theirs, lease_s=-1.0)))
provoke("Sessions.Attach BAD_MESSAGE", lambda w: _attach(w, w.theirs.message("AttachClientMessage")(close={})))

for _method in (
    "Metrics",
    "Timeline",
    "SetLogLevel",
    "RecentLog",
    "ListQuarantine",
    "Pardon",
    "Drain",
    "SupportBundle",
):
    provoke(f"Admin.{_method} PERMISSION_DENIED", lambda w, m=_method: w.theirs.call(f"Admin.{m}"))
provoke("Admin.SetLogLevel BAD_VALUE", lambda w: w.ours.call("Admin.SetLogLevel", level="loud"))
provoke("Admin.Pardon BAD_VALUE", lambda w: w.ours.call("Admin.Pardon"))
provoke("Admin.Pardon UNKNOWN_GRAPH", lambda w: w.ours.call("Admin.Pardon", graphs=["0" * 32]))
provoke("Admin.Drain BAD_VALUE", lambda w: w.ours.call("Admin.Drain", timeout_s=86_401))

# ---- after a worker's death


class Orphan:
    """A resumed session whose worker has died, with a graph, a plane, a run and the id of a launch from before."""

    def __init__(self, daemon: Daemon, stack: contextlib.ExitStack) -> None:
        side = stack.enter_context(side_connection(daemon.path))
        side.send(hello(1, 1))
        opened = decode(decode(side.receive())[2][0])
        session, secret = opened[3][0], opened[4][0]
        before = World(daemon, Service(stack.enter_context(grpc.insecure_channel(daemon.endpoint)), secret.hex()))
        self.plane = before.plane()
        self.graph, self.run = before.graph(self.plane), before.kept(LONG)
        self.launch, self.simulation = before.id(), before.id()  # in flight, then
        talks = [
            before.talk("Graphs.LaunchWithCalls", before.launching(host=True, launch_id=self.launch)),
            before.talk("Runs.SimulateWithCalls", before.simulating(launch_id=self.simulation)),
        ]
        for _, replies in talks:
            assert next(replies).HasField("call")
        worker = children(daemon.process.pid)[0]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: children(daemon.process.pid) not in ([], [worker]), "the next worker")
        side = stack.enter_context(side_connection(daemon.path))
        resume = number(1, session) + nested(2, secret) + number(3, self.simulation)
        side.send(nested(1, nested(1, number(1, 1) + number(2, 1)) + nested(6, resume)))
        assert 2 in decode(side.receive())
        self.world = World(daemon, Service(stack.enter_context(grpc.insecure_channel(daemon.endpoint)), secret.hex()))


AFTER_A_DEATH: dict[tuple[str, str], Callable[[Orphan], Any]] = {
    ("Graphs.Launch", "WORKER_RESTARTED"): lambda o: _launch(o.world, "Graphs.Launch", launch_id=o.launch),
    ("Graphs.Enqueue", "WORKER_RESTARTED"): lambda o: _launch(o.world, "Graphs.Enqueue", launch_id=o.launch),
    ("Graphs.LaunchWithCalls", "WORKER_RESTARTED"): lambda o: _launch(
        o.world, "Graphs.LaunchWithCalls", launch_id=o.launch
    ),
    ("Graphs.LaunchWithCalls", "GRAPH_STATE"): lambda o: _launch(
        o.world, "Graphs.LaunchWithCalls", graph=o.graph, launch_id=1000
    ),
    ("Runs.Simulate", "WORKER_RESTARTED"): lambda o: o.world.call(
        "Runs.Simulate", run=o.world.run(), launch_id=o.simulation
    ),
    ("Runs.SimulateWithCalls", "WORKER_RESTARTED"): lambda o: o.world.send(
        "Runs.SimulateWithCalls", o.world.simulating(launch_id=o.simulation)
    ),
    ("Runs.Fetch", "WORKER_RESTARTED"): lambda o: _fetch(o.world, run=o.run),
    ("Graphs.Restore", "UNKNOWN_PLANE"): lambda o: (
        o.world.call("Planes.Release", planes=[{"id": o.plane.id, "generation": o.plane.generation}]),
        o.world.call("Graphs.Restore", graph=o.graph),
    ),
}

#: What takes more than a message: the test of another suite that does it.
ELSEWHERE = {
    ("Planes.Create", "OUT_OF_MEMORY"): "tests/service/test_scarcity.py::test_memory_runs_out",
    (
        "Planes.Create",
        "SYSTEM",
    ): "tests/integration/test_gpu_planes.py::test_a_daemon_without_a_driver_names_the_cure",
    (
        "Planes.Create",
        "MIXED_DEVICES",
    ): "tests/integration/test_gpu_imports.py::test_memory_of_a_gpu_that_the_daemon_does_not_use_is_refused_by_name",
    ("Graphs.Build", "COMPILE_FAILED"): (
        "tests/integration/test_compile_limits.py::test_a_compile_without_end_is_given_up_and_named"
    ),
    ("Sessions.Attach", "DEADLINE"): "server/rpc/services_test.cpp::StreamsWhoseClientSaysNothingEnd",
    ("Graphs.LaunchWithCalls", "DEADLINE"): "server/rpc/services_test.cpp::StreamsWhoseClientSaysNothingEnd",
    ("Runs.SimulateWithCalls", "DEADLINE"): "server/rpc/services_test.cpp::StreamsWhoseClientSaysNothingEnd",
    ("Graphs.Launch", "DEADLINE"): "server/launch_job_test.cpp::APassedDeadlineStartsNothing",
    ("Graphs.Build", "GRAPH_QUARANTINED"): (
        "tests/conformance/pardon_test.cpp::AGraphThatWasRunningAtTwoDeathsIsLaunchedNoMore"
    ),
    ("Graphs.Restore", "GRAPH_QUARANTINED"): (
        "tests/conformance/pardon_test.cpp::AGraphThatWasRunningAtTwoDeathsIsLaunchedNoMore"
    ),
    ("Graphs.Explain", "GRAPH_LIMIT"): "engine/graph/explain_test.cpp::Reason::graph_limit",
}


def reason_of(error: grpc.RpcError) -> str:
    """Of a refusal: the name that programs may rely on."""
    found = dict(error.trailing_metadata() or ())
    return str(found.get("eagle-error-reason", error.code()))
