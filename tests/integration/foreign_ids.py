"""What one client holds, and every call that another one can make with the ids of it. Run by the clients of
test_foreign_ids.py, each as a user of its own, with stubs: the library would not send such ids.
"""

from __future__ import annotations

import contextlib
import queue
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import grpc
import hand_made
from harness import decode, nested, number, side_connection
from stubs import Service, session_at

SAMPLES = 512  # a page of float64: no plane shares its page
LEASE_S = 600.0


@dataclass(frozen=True)
class Ids:
    """All that there is to know of what somebody holds, but for the secret."""

    session: int
    plane: int
    generation: int
    mask: int
    mask_generation: int
    graph: int
    launch: int  # in flight: its host call is open
    ended_launch: int
    run: int  # that computes
    ended_run: int
    name: str  # of a published array

    def of_nothing(self) -> Ids:
        """The same for things that never were."""
        never = {field.name: getattr(self, field.name) + 1_000_003 for field in fields(self) if field.name != "name"}
        kept = {"generation": self.generation, "mask_generation": self.mask_generation}
        return replace(self, **{**never, **kept}, name="never published")


# ---- the owner


class Owner:
    """Holds one of everything, under ids that a fresh session has not used."""

    def __init__(self, path: str) -> None:
        self._stack = contextlib.ExitStack()
        service = self.service = self._stack.enter_context(session_at(Path(path)))
        spec = [{"bytes": 8 * SAMPLES}] * 40
        self.refs = [plane.ref for plane in service.call("Planes.Create", planes=spec).planes]
        x, mask = self.refs[-2:]
        built = [
            service.call("Graphs.Build", graph=hand_made.adding_graph(service, x, SAMPLES, host_call=host)).graph
            for host in (False, False, False, True)
        ]
        self.graph, calling = built[2:]
        service.call("Graphs.Launch", graph=self.graph, count=1, launch_id=1)
        service.call(
            "Planes.Publish",
            slice={"plane": self.refs[0], "view": hand_made.view(service, 0, SAMPLES)},
            name="what is hers",
        )
        self.ended_run, self.run = (self._submit(steps) for steps in (5, 2**50))
        while not service.call("Runs.Get", run=self.ended_run).ended:
            time.sleep(0.01)
        self._requests: queue.Queue[Any] = queue.Queue()
        message = service.message("LaunchClientMessage")
        self._requests.put(message(launch={"graph": calling, "count": 1, "launch_id": 2}))
        self._replies = service.converse("Graphs.LaunchWithCalls", iter(self._requests.get, None))
        self._call = next(self._replies).call
        sessions = service.call("Graphs.List").graphs
        self.ids = Ids(
            session=sessions[0].session,
            plane=x.id,
            generation=x.generation,
            mask=mask.id,
            mask_generation=mask.generation,
            graph=calling,
            launch=2,
            ended_launch=1,
            run=self.run,
            ended_run=self.ended_run,
            name="what is hers",
        )

    def _submit(self, steps: int) -> int:
        service, spec = self.service, [{"bytes": 8 * SAMPLES}] * 2
        x, mask = (plane.ref for plane in service.call("Planes.Create", planes=spec).planes)
        described = hand_made.counting_run(service, x, mask, SAMPLES, steps)
        kept = hand_made.kept_planes(service, SAMPLES)
        return service.call(
            "Runs.Submit",
            run=described,
            name="hers",
            lease_s=LEASE_S,
            planes=kept,
            mask="done",
            attempt=b"%16d" % steps,
        ).run

    def told(self) -> dict[str, Any]:
        return asdict(self.ids)

    def _values(self, ref: Any, samples: int = SAMPLES) -> set[float]:
        slice_ = {"plane": ref, "view": hand_made.view(self.service, 0, samples)}
        chunks = self.service.call("Planes.Read", slice=slice_)
        return set(struct.unpack(f"<{samples}d", b"".join(chunk.data for chunk in chunks)))

    def finish(self) -> dict[str, Any]:
        """Goes on with all of it: what came of that, as an untouched session would tell it too."""
        service = self.service
        computing = not service.call("Runs.Get", run=self.run).ended
        service.call("Runs.CancelRun", run=self.run)
        reply = service.message("LaunchClientMessage")(reply={"sequence": self._call.sequence, "ok": True})
        self._requests.put(reply)
        report = next(self._replies).report
        self._requests.put(None)
        service.call("Graphs.Launch", graph=self.graph, count=1, launch_id=3)
        again = service.call("Graphs.Launch", graph=self.graph, count=1, launch_id=1)  # has run: told again
        into = [hand_made.declared(service, ref, 8 * SAMPLES) for ref in self.refs[1:3]]
        service.call("Runs.Fetch", run=self.ended_run, planes=into, into=hand_made.kept_planes(service, SAMPLES))
        result = {
            "computing": computing,
            "launches": [report.launches, again.launches],
            "added": sorted(self._values(self.refs[-2])),
            "untouched": sorted({value for ref in self.refs[3:-2] for value in self._values(ref)}),
            "fetched": sorted(self._values(self.refs[1])),
            "opened": service.call("Planes.Open", name="what is hers").plane.bytes,
            "planes": len(service.call("Planes.List").planes),
            "graphs": len(service.call("Graphs.List").graphs),
        }
        self._stack.close()
        return result


# What a session has in which nobody else did anything: the launch that was held and the two before and after it added
# 1 each, the run counted to 5, and everything is there.
UNHARMED = {
    "computing": True,
    "launches": [1, 1],
    "added": [3.0],
    "untouched": [0.0],
    "fetched": [5.0],
    "opened": 8 * SAMPLES,
    "planes": 44,  # 40, and 2 of each run
    "graphs": 4,
}


# ---- somebody else


class Stranger:
    """Has a session with two planes, a graph and a run that ended of its own, and knows ids."""

    def __init__(self, path: str) -> None:
        self._stack = contextlib.ExitStack()
        self._path = path
        service = self.service = self._stack.enter_context(session_at(Path(path)))
        spec = [{"bytes": 8 * SAMPLES}] * 2
        self.x, self.mask = (plane.ref for plane in service.call("Planes.Create", planes=spec).planes)
        described = hand_made.adding_graph(service, self.x, SAMPLES)
        self.graph = service.call("Graphs.Build", graph=described).graph
        described = hand_made.counting_run(service, self.x, self.mask, SAMPLES, 5)
        kept = hand_made.kept_planes(service, SAMPLES)
        self.run = service.call(
            "Runs.Submit", run=described, name="his", lease_s=LEASE_S, planes=kept, mask="done", attempt=b"x" * 16
        ).run
        while not service.call("Runs.Get", run=self.run).ended:
            time.sleep(0.01)
        spec = [{"bytes": 8 * SAMPLES}] * 2  # a run keeps its planes; these are his own again
        self.x, self.mask = (plane.ref for plane in service.call("Planes.Create", planes=spec).planes)

    def requests(self, ids: Ids) -> Iterator[tuple[str, str, Any]]:
        """(call, what of it, message) of every call that names something of a session."""
        service, message = self.service, self.service.message
        ref = message("PlaneRef")(id=ids.plane, generation=ids.generation)
        mask = message("PlaneRef")(id=ids.mask, generation=ids.mask_generation)
        view = hand_made.view(service, 0, SAMPLES)
        slice_ = message("PlaneSlice")(plane=ref, view=view)
        theirs = hand_made.adding_graph(service, ref, SAMPLES)
        mine = hand_made.adding_graph(service, self.x, SAMPLES)
        run_of_theirs = hand_made.counting_run(service, ref, mask, SAMPLES, 3)
        run_of_both = hand_made.counting_run(service, self.x, mask, SAMPLES, 3)
        kept = hand_made.kept_planes(service, SAMPLES)

        yield "Planes.Release", "plane", message("ReleasePlanesRequest")(planes=[ref])
        yield "Planes.Release", "plane beside own", message("ReleasePlanesRequest")(planes=[ref, self.mask])
        yield "Planes.Accept", "plane", message("AcceptPlanesRequest")(parts=[{"plane": ref, "view": view}])
        yield "Planes.Read", "plane", message("ReadRequest")(slice=slice_)
        yield "Planes.Write", "plane", message("WriteRequest")(slice=slice_, data=b"\xff" * 64)
        yield "Planes.Fill", "plane", message("FillRequest")(slice=slice_, element=b"\xff" * 8)
        yield "Planes.Publish", "plane", message("PublishRequest")(slice=slice_, name="his", attempt=b"1" * 16)
        for owner in ("", "uid:61002", "uid:0"):
            yield "Planes.Open", f"name of '{owner}'", message("OpenRequest")(name=ids.name, owner=owner)
        yield "Planes.Withdraw", "name", message("WithdrawRequest")(name=ids.name)
        yield "Planes.Withdraw", "sealed off", message("WithdrawRequest")(name=ids.name, seal_off=True)

        yield "Graphs.Build", "plane", message("BuildRequest")(graph=theirs)
        for count, launch in ((1, 0), (3, ids.launch), (1, ids.ended_launch)):
            launching = message("LaunchRequest")(graph=ids.graph, count=count, launch_id=launch)
            yield "Graphs.Launch", f"graph, launch {launch}", launching
            yield "Graphs.LaunchWithCalls", f"graph, launch {launch}", message("LaunchClientMessage")(launch=launching)
        for launch in (ids.launch, ids.ended_launch):
            enqueued = message("LaunchRequest")(graph=ids.graph, count=1, launch_id=launch, enqueued=True)
            yield "Graphs.Enqueue", f"graph, launch {launch}", enqueued
            yield "Graphs.Cancel", f"launch {launch}", message("CancelRequest")(launch_id=launch)
        update = message("ParamUpdate")(argument={"name": "by"}, value={"real": 1e9})
        yield "Graphs.Update", "graph", message("UpdateRequest")(graph=ids.graph, params=[update])
        yield "Graphs.Rebind", "graph to own", message("RebindRequest")(graph=ids.graph, description=mine)
        yield "Graphs.Rebind", "own to plane", message("RebindRequest")(graph=self.graph, description=theirs)
        yield "Graphs.Edges", "graph", message("EdgesRequest")(graph=ids.graph)
        for session, whose in ((0, "as own"), (ids.session, "of its session")):
            named: dict[str, Any] = {"graph": ids.graph, "session": session}
            yield "Graphs.Picture", whose, message("PictureRequest")(**named, format=1)
            yield "Graphs.Explain", whose, message("ExplainRequest")(**named, node={"index": 0})
            yield "Graphs.Inspect", whose, message("InspectRequest")(**named)
            yield "Graphs.Describe", whose, message("DescribeGraphRequest")(**named)
            yield "Graphs.Verify", whose, message("VerifyRequest")(**named)
            yield "Graphs.ListKernel", whose, message("ListKernelRequest")(**named, kernel=0, form=1)
            yield "Graphs.Timeline", whose, message("GraphTimelineRequest")(**named)
        yield "Graphs.Release", "graph", message("ReleaseGraphRequest")(graph=ids.graph)
        yield "Graphs.Restore", "graph", message("RestoreGraphRequest")(graph=ids.graph)

        for described, which in ((run_of_theirs, "planes"), (run_of_both, "mask")):
            simulate = message("SimulateRequest")(run=described, launch_id=ids.launch)
            yield "Runs.Simulate", which, simulate
            yield "Runs.SimulateWithCalls", which, message("SimulateClientMessage")(simulate=simulate)
            submitted = {"run": described, "name": "his", "lease_s": LEASE_S, "planes": kept, "mask": "done"}
            yield "Runs.Submit", which, message("SubmitRequest")(**submitted, attempt=b"2" * 16)
        into = [hand_made.declared(service, each, 8 * SAMPLES) for each in (self.x, self.mask)]
        for run, which in ((ids.run, "that computes"), (ids.ended_run, "that ended")):
            yield "Runs.Get", which, message("RunRef")(run=run)
            yield "Runs.CancelRun", which, message("RunRef")(run=run)
            yield "Runs.Fetch", which, message("FetchRunRequest")(run=run, planes=into, into=kept)
        into = [hand_made.declared(service, each, 8 * SAMPLES) for each in (ref, mask)]
        yield "Runs.Fetch", "own into plane", message("FetchRunRequest")(run=self.run, planes=into, into=kept)

        yield "Admin.ListPlanes", "session", message("ListAllPlanesRequest")(session=ids.session)
        # Last: whatever it does not name of the caller's own is released.
        yield "Planes.Retain", "planes and graphs", message("RetainRequest")(planes=[ref, mask], graphs=[ids.graph])

    def outcomes(self, told: dict[str, Any]) -> list[list[Any]]:
        """Of each request: the call, what of it, and what came of it, with ids by their names."""
        ids = Ids(**told)
        return [[method, what, *self._outcome(method, request, ids)] for method, what, request in self.requests(ids)]

    def _outcome(self, method: str, request: Any, ids: Ids) -> tuple[str, str]:
        try:
            replies = self.service.send(method, request)
        except grpc.RpcError as error:
            return error.code().name, plain(error.details(), ids)
        return "OK", "".join(str(reply) for reply in replies)

    def seen(self) -> dict[str, Any]:
        """What its lists show."""
        service = self.service
        return {
            "planes": len(service.call("Planes.List").planes),
            "sessions of graphs": sorted(
                {graph.session for graph in service.call("Graphs.List", all_sessions=True).graphs}
            ),
            "runs": [run.run for run in service.call("Runs.List").runs],
            "principals": sorted({session.principal for session in service.call("Admin.ListSessions").sessions}),
            "sessions of planes": sorted({plane.session for plane in service.call("Admin.ListPlanes").planes}),
        }

    def nameless(self) -> list[str]:
        """Calls whose requests have no field that could name anything of a session."""
        return [method for method in self.service.methods() if not names_something(self.service, method)]

    def methods(self) -> list[str]:
        """All calls that there are."""
        return self.service.methods()

    def resumes(self, session: int) -> list[Any]:
        """What a Hello reads that would go on with that session, with a secret that is made up."""
        resume = number(1, session) + nested(2, b"\x5a" * 32) + number(3, 100)
        protocol = nested(1, number(1, 1) + number(2, 1))
        with side_connection(Path(self._path)) as side:
            side.send(nested(1, protocol + nested(3, b"forged") + nested(6, resume)))
            error = decode(decode(side.receive())[1][0])
        return [error[1][0], error[2][0].decode(), re.sub(rf"\b{session}\b", "<session>", error[3][0].decode())]

    def close(self) -> None:
        self._stack.close()


def plain(text: str, ids: Ids) -> str:
    """The text with each id as <id> and each name as <name>: what is left must not tell which ids they were."""
    known = {str(getattr(ids, field.name)) for field in fields(ids) if field.name != "name"}

    def hidden(found: re.Match[str]) -> str:
        return f"{found[1]} <id>" if found[2] in known else found[0]

    return re.sub(r"\b(plane|graph|run|session|launch) (\d+)", hidden, text.replace(ids.name, "<name>"))


NAMING = {"graph", "session", "launch_id", "run", "graphs"}
NAMING_TEXTS = {"OpenRequest", "WithdrawRequest"}


def names_something(service: Service, method: str) -> bool:
    """Whether anything in the request's message, however deep, is an id or the name of something of a session."""
    found, _ = service.method(method)
    waiting, known = [found.input_type], set()
    while waiting:
        message = waiting.pop()
        if message.full_name in known:
            continue
        known.add(message.full_name)
        if message.name in NAMING_TEXTS or message.name == "PlaneRef":
            return True
        for field in message.fields:
            if field.message_type is not None:
                waiting.append(field.message_type)
            elif field.name in NAMING:
                return True
    return False
