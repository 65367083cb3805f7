"""raptor-eagle with raptor-hawk's kernels: over numpy arrays on the CPU, over CuPy's on a GPU."""

from __future__ import annotations

import time
from functools import cache

import eagle
import numpy as np
from cases import inputs
from hawk import Mutable, Param, Scalar, Terminated, Vector, kernel
from hawk import math as hm
from work import DEVICE, ON_GPU, Work

if ON_GPU:
    import cupy

    cupy.cuda.Device(int(DEVICE.partition(":")[2] or 0)).use()


def array(values):
    """A copy of them where the work is done."""
    return cupy.asarray(values) if ON_GPU else values.copy()


def zeros(n):
    return array(np.zeros(n))


def values_of(found):
    return cupy.asnumpy(found) if ON_GPU else np.asarray(found)


@kernel
def affine(x: Scalar, y: Mutable[Scalar], a: Param[Scalar], b: Param[Scalar]):
    y = a * x + b


@kernel
def add_one(x: Scalar, y: Mutable[Scalar]):
    y = x + 1.0


@cache
def plan(of):
    return eagle.deploy(of)


def launch(n, count, threads):
    x, y = array(inputs.chain_start(n)), zeros(n)
    g = eagle.Graph().add(plan(affine).bind(x=x, y=y, a=1.5, b=0.25)).build()

    def run():
        for _ in range(count):
            g.launch()

    return Work(run, lambda: [values_of(y)], units=count)


def bound_chain(planes):
    links = zip(inputs.chain_links(), planes, planes[1:], strict=False)
    return [plan(affine).bind(x=x, y=y, a=float(a), b=float(b)) for (a, b), x, y in links]


def chain(n, count, scratch, threads):
    planes = [array(inputs.chain_start(n)), *(zeros(n) for _ in range(16))]
    g = eagle.Graph()
    for bound in bound_chain(planes):
        g.add(bound)
    g.build()
    answer = lambda: [values_of(p) for p in (planes[16:] if scratch else planes[1:])]  # noqa: E731
    return Work(lambda: void(g.launch(count)), answer, units=count)


def branches(n, count, branches, threads):
    chains = [[array(inputs.chain_start(n)), *(zeros(n) for _ in range(16))] for _ in range(branches)]
    g = eagle.Graph().add_group([bound_chain(planes) for planes in chains]).build()
    answer = lambda: [values_of(p) for planes in chains for p in planes[1:]]  # noqa: E731
    return Work(lambda: void(g.launch(count)), answer, units=count)


def build(nodes, kind, threads):
    """Seconds of `build()` alone."""

    def run():
        g = eagle.Graph()
        if kind == "columns of one matrix":
            matrix = np.zeros((64, nodes))
            for i in range(nodes):
                column = matrix[:, i]
                g.add_node(eagle.opaque(lambda column=column: column.fill(1.0), writes={"column": column}))
        elif kind == "in place":
            x = np.zeros(8)
            bound = plan(affine).bind(x=x, y=x, a=1.0, b=1.0)
            for _ in range(nodes):
                g.add(bound)
        else:
            for _ in range(nodes):
                g.add(plan(affine).bind(x=np.zeros(8), y=np.zeros(8), a=1.0, b=1.0))
        begin = time.perf_counter()
        g.build()
        return time.perf_counter() - begin

    return Work(run)


@kernel
def euler(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    end: Scalar,
    dt: Param[Scalar],
    terminated: Terminated,
):
    later = x + dt * v
    v = v - dt * omega * omega * x
    x = later
    t = t + dt
    terminated = t >= end


@kernel
def damped(
    x: Mutable[Scalar],
    v: Mutable[Scalar],
    t: Mutable[Scalar],
    omega: Scalar,
    end: Scalar,
    dt: Param[Scalar],
    c: Param[Scalar],
    terminated: Terminated,
):
    half = 0.5 * dt
    k1x = v
    k1v = -(omega * omega * x) - c * v
    k2x = v + half * k1v
    k2v = -(omega * omega * (x + half * k1x)) - c * (v + half * k1v)
    k3x = v + half * k2v
    k3v = -(omega * omega * (x + half * k2x)) - c * (v + half * k2v)
    k4x = v + dt * k3v
    k4v = -(omega * omega * (x + dt * k3x)) - c * (v + dt * k3v)
    x = x + dt / 6.0 * (k1x + 2.0 * k2x + 2.0 * k3x + k4x)
    v = v + dt / 6.0 * (k1v + 2.0 * k2v + 2.0 * k3v + k4v)
    t = t + dt
    terminated = t >= end


def gravity(r):
    squared = hm.dot(r, r)
    distance = hm.sqrt(squared)
    ratio = 5.0 * r[2] * r[2] / squared
    factor = 1.5 * 1e-3 * 1.0 * 0.9 * 0.9 / (squared * squared * distance)
    point = -1.0 / (squared * distance)
    in_plane = point + factor * (ratio - 1.0)
    return hm.vec(r[0] * in_plane, r[1] * in_plane, r[2] * (point + factor * (ratio - 3.0)))


@kernel
def satellite(
    r: Mutable[Vector[3]],
    v: Mutable[Vector[3]],
    t: Mutable[Scalar],
    end: Scalar,
    h: Param[Scalar],
    terminated: Terminated,
):
    half = 0.5 * h
    k1v = gravity(r)
    k2r = v + half * k1v
    k2v = gravity(r + half * v)
    k3r = v + half * k2v
    k3v = gravity(r + half * k2r)
    k4r = v + h * k3v
    k4v = gravity(r + h * k3r)
    later = r + h / 6.0 * (v + 2.0 * k2r + 2.0 * k3r + k4r)
    v = v + h / 6.0 * (k1v + 2.0 * k2v + 2.0 * k3v + k4v)
    r = later
    t = t + h
    terminated = t >= end


def two_body(n, threads):
    return simulated(satellite, inputs.satellites(n), h=inputs.J2_STEP)


def simulated(model, start, **numbers):
    s = {name: array(values) for name, values in start.items()}
    s["end"] = s.pop("t_end")
    names = [name for name in start if name not in ("omega", "t_end")]
    held = {}

    def run():
        held["result"] = eagle.simulate(model, **s, **numbers, max_steps=2000)

    def again():
        for name in names:
            s[name][...] = array(start[name])

    return Work(run, lambda: [values_of(getattr(held["result"], name)) for name in names], again)


def oscillator(n, spread, threads):
    return simulated(euler, inputs.oscillators(n, spread), dt=inputs.DT)


def rk4(n, spread, threads):
    return simulated(damped, inputs.oscillators(n, spread), dt=inputs.DT, c=inputs.DAMPING)


def mixed(n, threads):
    @kernel
    def function(x: Scalar, y: Mutable[Scalar]):
        y = hm.sin(x) * hm.exp(-x * x) + hm.log1p(hm.abs(x)) * hm.tanh(x) + hm.pow(hm.abs(x), 0.3)

    return single(function, n)


def single(function, n, **numbers):
    x, y = array(inputs.reals(n)), zeros(n)
    g = eagle.Graph().add(eagle.deploy(function).bind(x=x, y=y, **numbers)).build()
    return Work(lambda: void(g.launch()), lambda: [values_of(y)])


def axpy(n, threads):
    return single(affine, n, a=3.0, b=0.5)


def total(n, threads):
    x, out = array(inputs.reals(n)), zeros(1)
    g = eagle.Graph().add_node(eagle.reduce(x, out, policy="ordered")).build()
    return Work(lambda: void(g.launch()), lambda: [values_of(out)])


def void(_):
    """What is timed from outside returns nothing."""


CASES = {
    "launch": launch,
    "chain": chain,
    "branches": branches,
    "build": build,
    "oscillator": oscillator,
    "rk4": rk4,
    "two_body": two_body,
    "mixed": mixed,
    "axpy": axpy,
    "sum": total,
}


def first_result():
    import tempfile

    n = 1000
    s = inputs.oscillators(n, False)
    s["end"] = s.pop("t_end")
    with tempfile.TemporaryDirectory() as fresh:  # nothing that an earlier run has compiled
        begin = time.perf_counter()

        @kernel
        def step(
            x: Mutable[Scalar],
            v: Mutable[Scalar],
            t: Mutable[Scalar],
            omega: Scalar,
            end: Scalar,
            dt: Param[Scalar],
            terminated: Terminated,
        ):
            later = x + dt * v
            v = v - dt * omega * omega * x
            x = later
            t = t + dt
            terminated = t >= end

        eagle.simulate(eagle.deploy(step, cache_dir=fresh), **s, dt=inputs.DT, max_steps=2000)
        return time.perf_counter() - begin
