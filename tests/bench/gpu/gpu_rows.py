"""The work that a GPU is measured by, a function a row or several: ours on the GPU, in process and through the daemon,
other packages there, and ours on the CPU, whose bits are the answer.

Kernels are those of the table of performance (``cases/line*.py``); sizes are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import eagle
import numpy as np
from cases import line09_two_body, line10_math, line13_scatter, line17_vjp
from cases.chains import affine, bound_chain
from cases.inputs import DAMPING, DT, J2_STEP, chain_links, chain_start, keys, oscillators, reals, satellites
from cases.oscillators import damped_rk4, oscillator
from frame import OTHER, OURS, Bench, Clock, Form, Row
from programs import program_rows

ON_CPU = "eagle in process, on the CPU"
# Packages that add and multiply in one rounding, or take the device's own functions.
NEAR = 1e-12


@dataclass(frozen=True)
class Place:
    """A session, and where its arrays are."""

    name: str
    session: Any
    device: str
    kind: str = OURS

    def array(self, values: np.ndarray) -> Any:
        return self.session.asarray(values, device=self.device)

    def zeros(self, *shape: int, dtype: Any = float) -> Any:
        return self.session.zeros(shape, dtype, device=self.device)

    def graph(self) -> eagle.Graph:
        return eagle.Graph(self.session)


def places(bench: Bench, device: str) -> list[Place]:
    """The CPU first: its answers are what all others are compared with."""
    on_gpu = [Place(name, session, device) for name, session in bench.sessions()]
    return [Place(ON_CPU, bench.here, "cpu", OTHER), *on_gpu]


def row(bench: Bench, device: str, title: str, make: Callable[[Place], Form], peers: list[Form]) -> Row:
    return Row(title, [make(place) for place in places(bench, device)] + peers)


def launched(place: Place, graph: eagle.Graph, answer: Callable[[], list[Any]], count: int = 1) -> Form:
    """``count`` replays by one call."""
    return Form(place.name, lambda: void(graph.launch(count)), place.kind, units=count, answer=answer)


def void(_: object) -> None:
    """What a form's ``run`` returns when it is timed from outside."""


# ---- launches and replays


def launches(bench: Bench, device: str) -> Iterator[Row]:
    n, calls = bench.size(1024, 64), bench.size(500, 2)

    def make(place: Place) -> Form:
        x, y = place.array(chain_start(n)), place.zeros(n)
        graph = place.graph().add(eagle.plan(affine).bind(x=x, y=y, a=1.5, b=0.25)).build()

        def run() -> None:
            for _ in range(calls):
                graph.launch()

        return Form(place.name, run, place.kind, units=calls, answer=lambda: [y])

    others = bench.peers("launch", NEAR, n=n, count=calls)
    yield row(bench, device, f"g.launch() and its wait, 1 node, {n:,} samples", make, others)


def replays(bench: Bench, device: str) -> Iterator[Row]:
    n, count = bench.size(1024, 64), bench.size(100, 2)
    for nodes in (1, 16, bench.size(256, 4)):

        def in_place(place: Place, nodes: int = nodes) -> Form:
            x = place.array(chain_start(n))
            graph = place.graph()
            for _ in range(nodes):
                graph.add(eagle.plan(affine).bind(x=x, y=x, a=0.5, b=0.25))
            form = launched(place, graph.build(), lambda: [x], count * nodes)
            form.run = lambda: void(graph.launch(count))
            form.reset = lambda: x.__setitem__(..., chain_start(n))
            return form

        yield row(bench, device, f"a node of a replay, {count} replays of a chain of {nodes}", in_place, [])
    for scratch in (False, True):

        def chained(place: Place, scratch: bool = scratch) -> Form:
            graph = place.graph()
            first, last = place.array(chain_start(n)), place.zeros(n)
            between = [graph.scratch(n) if scratch else place.zeros(n) for _ in chain_links()[1:]]
            for bound in bound_chain([first, *between, last]):
                graph.add(bound)
            return launched(place, graph.build(), lambda: [last] if scratch else [*between, last], count)

        title = f"chain of 16, {n:,} samples, {'scratch between' if scratch else 'every plane stored'}"
        yield row(bench, device, title, chained, bench.peers("chain", NEAR, n=n, count=count, scratch=scratch))

    def branched(place: Place) -> Form:
        chains = [[place.array(chain_start(n)), *(place.zeros(n) for _ in chain_links())] for _ in range(8)]
        graph = place.graph().add_group([bound_chain(planes) for planes in chains]).build()
        return launched(place, graph, lambda: [plane for planes in chains for plane in planes[1:]], count)

    others = bench.peers("branches", NEAR, n=n, count=count, branches=8)
    yield row(bench, device, f"8 branches of 16 nodes, {n:,} samples", branched, others)


# ---- values to the GPU and back


def copies(bench: Bench, device: str) -> Iterator[Row]:
    n = bench.size(32_000_000, 4096)
    values = reals(n)

    def rate(move: Callable[[], object]) -> Callable[[], float]:
        def run() -> float:
            begin = Clock.now()
            move()
            return 8e-9 * n / (Clock.now() - begin)

        return run

    for title, case in (("values to the GPU", "send"), ("values from the GPU", "fetch")):
        forms = []
        for place in places(bench, device)[1:]:
            array = place.array(values)
            if case == "send":
                move = lambda array=array: array.__setitem__(..., values)  # noqa: E731
            else:
                move = array.numpy
            forms.append(Form(place.name, rate(move), place.kind, answer=lambda array=array: [array]))
        forms += bench.peers(case, 0.0, n=n)
        yield Row(f"{title}, {8 * n:,} bytes", forms, unit="GB/s")


# ---- kernels


def kernels(bench: Bench, device: str) -> Iterator[Row]:
    n = bench.size(10_000_000, 2048)

    def single(kernel: Any, numbers: dict[str, float]) -> Callable[[Place], Form]:
        def make(place: Place) -> Form:
            x, y = place.array(reals(n)), place.zeros(n)
            graph = place.graph().add(eagle.plan(kernel).bind(x=x, y=y, **numbers)).build()
            return launched(place, graph, lambda: [y])

        return make

    yield row(
        bench, device, f"y = a x + b, {n:,}", single(affine, {"a": 3.0, "b": 0.5}), bench.peers("axpy", NEAR, n=n)
    )
    mixed = single(line10_math.mixed, {})
    title = f"sin(x) exp(-x x) + log1p(|x|) tanh(x) + |x|^0.3, {n:,}"
    yield row(bench, device, title, mixed, bench.peers("mixed", 1e-11, n=n))
    for full in (1_000_000, 10_000_000):
        size = bench.size(full, full // 1000)
        for compensated in (False, True):

            def summed(place: Place, size: int = size, compensated: bool = compensated) -> Form:
                x, out = place.array(reals(size)), place.zeros(1)
                graph = place.graph().add_node(eagle.reduce(x, out, compensated=compensated)).build()
                return launched(place, graph, lambda: [out])

            others = [] if compensated else bench.peers("sum", 1e-9, n=size)
            name = "compensated sum" if compensated else "sum"
            yield row(bench, device, f"{name} of {size:,} in the fixed order", summed, others)
    size, cells = bench.size(1_000_000, 400), bench.size(100, 10)

    def scattered(place: Place) -> Form:
        x, key = place.array(reals(size)), place.array(keys(size, cells, "uniform"))
        bins = place.zeros(cells)
        graph = place.graph().add(eagle.plan(line13_scatter.scatter).bind(x=x, key=key, h=bins)).build()
        form = launched(place, graph, lambda: [bins])
        form.reset = lambda: bins.__setitem__(..., 0.0)
        return form

    yield row(bench, device, f"scatter-add of {size:,} uniform keys into {cells}", scattered, [])
    for full, count in ((65_536, 10), (4_096, 100)):
        size, count = bench.size(full, 64), bench.size(count, 2)

        def adjoint(place: Place, size: int = size, count: int = count) -> Form:
            arrays = {name: place.array(values) for name, values in line17_vjp.inputs(size).items()}
            back = eagle.plan(eagle.diff.vjp(line17_vjp.step, wrt=["r", "v"]))
            bound = back.bind(session=place.session, h=J2_STEP, **arrays).launch()
            graph, answer = bound._graph, [bound.planes["bar_r"], bound.planes["bar_v"]]
            return Form(
                place.name, lambda: void(graph.launch(count, {})), place.kind, units=count, answer=lambda: answer
            )

        others = bench.peers("two_body_vjp", NEAR, n=size, count=count)
        yield row(bench, device, f"vjp of a two-body RK4 step, {size:,} samples", adjoint, others)


# ---- runs until samples are done


def runs(bench: Bench, device: str) -> Iterator[Row]:
    # A smoke run takes some of the steps.
    end = bench.size(1000, 20) / 1000

    def stepped(kernel: Any, start: dict[str, np.ndarray], names: tuple[str, ...], **numbers: float) -> Any:
        def make(place: Place) -> Form:
            arrays = {name: place.array(values) for name, values in start.items()}
            arrays["done"] = place.zeros(start["t"].shape[-1], dtype=bool)

            def reset() -> None:
                for name, array in arrays.items():
                    array[...] = start.get(name, False)

            def run() -> None:
                result = eagle.simulate(kernel, max_steps=2000, session=place.session, **arrays, **numbers)
                assert result.status == "finished", result.status

            return Form(place.name, run, place.kind, reset=reset, answer=lambda: [arrays[name] for name in names])

        return make

    def ending(start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**start, "t_end": start["t_end"] * end}

    n = bench.size(100_000, 48)
    of_oscillator, of_satellite = ("x", "v", "t"), ("r", "v", "t")
    for spread in (False, True):
        start = ending(oscillators(n, spread))
        others = bench.peers("oscillator", 1e-9, n=n, spread=spread)
        how = "spread over (0, 1]" if spread else "finish together"
        title = f"oscillator, {n:,}, {1000 * end:g} steps, {how}"
        yield row(bench, device, title, stepped(oscillator, start, of_oscillator, dt=DT), others)
    for spread in (False, True):
        start = ending(oscillators(n, spread))
        others = bench.peers("rk4", 1e-9, n=n, spread=spread)
        title = f"RK4 oscillator, {n:,}, {1000 * end:g} steps, {'spread' if spread else 'together'}"
        yield row(bench, device, title, stepped(damped_rk4, start, of_oscillator, dt=DT, c=DAMPING), others)
    n = bench.size(10_000, 48)
    start = ending(satellites(n))
    others = bench.peers("two_body", 1e-9, n=n)
    title = f"J2 two-body RK4, {n:,}, {1000 * end:g} steps"
    yield row(bench, device, title, stepped(line09_two_body.two_body, start, of_satellite, h=J2_STEP), others)


# ---- from C++, without a session


def engine(bench: Bench, device: str) -> Iterator[Row]:
    samples = bench.size(1 << 25, 1 << 10)
    ordinal = device.partition(":")[2] or "0"
    yield from program_rows(bench, "bench_gpu", "--samples", str(samples), "--ordinal", ordinal)


GROUPS = {
    "launches": launches,
    "replays": replays,
    "copies": copies,
    "kernels": kernels,
    "runs": runs,
    "engine": engine,
}
