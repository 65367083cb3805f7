"""JAX, on the CPU or where JAX_PLATFORMS says: each piece of work one jitted function, in float64."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from cases import inputs
from work import Work

jax.config.update("jax_enable_x64", True)


def work(function, *arguments, outputs=None, units=1):
    """`function` again and again over the same arrays; the result is waited for."""
    held = [None]

    def run():
        for _ in range(units):
            held[0] = jax.block_until_ready(function(*arguments))

    def answer():
        found = held[0] if isinstance(held[0], (tuple, list)) else [held[0]]
        return [np.asarray(array) for array in found][:outputs]

    return Work(run, answer, units=units)


def launch(n, count, threads):
    return work(jax.jit(lambda x: 1.5 * x + 0.25), jnp.asarray(inputs.chain_start(n)), units=count)


def chain(n, count, scratch, threads):
    links = [(float(a), float(b)) for a, b in inputs.chain_links()]

    def function(x):
        planes = []
        for a, b in links:
            x = a * x + b
            planes.append(x)
        return planes[-1] if scratch else planes

    return work(jax.jit(function), jnp.asarray(inputs.chain_start(n)), units=count)


def oscillator(n, spread, threads):
    s = {name: jnp.asarray(array) for name, array in inputs.oscillators(n, spread).items()}

    def function(x, v, t, w, end):
        def step(now):
            x, v, t = now
            live = t < end
            nx, nv = x + inputs.DT * v, v - inputs.DT * w * w * x
            return jnp.where(live, nx, x), jnp.where(live, nv, v), jnp.where(live, t + inputs.DT, t)

        return jax.lax.while_loop(lambda now: jnp.any(now[2] < end), step, (x, v, t))

    return work(jax.jit(function), *(s[k] for k in ("x", "v", "t", "omega", "t_end")))


def gravity(r):
    squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    distance = jnp.sqrt(squared)
    ratio = 5.0 * r[2] * r[2] / squared
    factor = 1.5 * 1e-3 * 1.0 * 0.9 * 0.9 / (squared * squared * distance)
    point = -1.0 / (squared * distance)
    return jnp.stack([point * r[i] + factor * r[i] * (ratio - (1.0, 1.0, 3.0)[i]) for i in range(3)])


def two_body(n, threads):
    s = {name: jnp.asarray(array) for name, array in inputs.satellites(n).items()}
    h = inputs.J2_STEP

    def function(r, v, t, end):
        def step(now):
            r, v, t = now
            k1r, k1v = v, gravity(r)
            k2r, k2v = v + h / 2 * k1v, gravity(r + h / 2 * k1r)
            k3r, k3v = v + h / 2 * k2v, gravity(r + h / 2 * k2r)
            k4r, k4v = v + h * k3v, gravity(r + h * k3r)
            r = r + h / 6 * (k1r + 2 * k2r + 2 * k3r + k4r)
            v = v + h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)
            return r, v, t + h

        return jax.lax.while_loop(lambda now: jnp.any(now[2] < end), step, (r, v, t))

    return work(jax.jit(function), *(s[k] for k in ("r", "v", "t", "t_end")))


def two_body_vjp(n, count, threads):
    h = inputs.J2_STEP
    start = inputs.satellites(n)

    def point(r):
        squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        return -1.0 / (squared * jnp.sqrt(squared)) * r

    def step(r, v):
        k1r, k1v = v, point(r)
        k2r, k2v = v + h / 2 * k1v, point(r + h / 2 * k1r)
        k3r, k3v = v + h / 2 * k2v, point(r + h / 2 * k2r)
        k4r, k4v = v + h * k3v, point(r + h * k3r)
        return r + h / 6 * (k1r + 2 * k2r + 2 * k3r + k4r), v + h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)

    def back(r, v, bar_r1, bar_v1):
        return jax.vjp(step, r, v)[1]((bar_r1, bar_v1))

    bars = jnp.asarray(start["v"] + 0.5), jnp.asarray(start["r"] - 0.25)
    return work(jax.jit(back), jnp.asarray(start["r"]), jnp.asarray(start["v"]), *bars, units=count)


def mixed(n, threads):
    def function(x):
        size = jnp.abs(x)
        return jnp.sin(x) * jnp.exp(-x * x) + jnp.log1p(size) * jnp.tanh(x) + jnp.power(size, 0.3)

    return work(jax.jit(function), jnp.asarray(inputs.reals(n)))


def axpy(n, threads):
    return work(jax.jit(lambda x: 3.0 * x + 0.5), jnp.asarray(inputs.reals(n)))


def total(n, threads):
    return work(jax.jit(lambda x: jnp.sum(x, keepdims=True)), jnp.asarray(inputs.reals(n)))


def send(n, threads):
    """Gigabytes a second to where JAX computes."""
    values = inputs.reals(n)
    held = [jax.block_until_ready(jnp.asarray(values))]

    def run():
        begin = time.perf_counter()
        held[0] = jax.block_until_ready(jax.device_put(values))
        return 8e-9 * n / (time.perf_counter() - begin)

    return Work(run, lambda: [np.asarray(held[0])])


def fetch(n, threads):
    """Gigabytes a second from there. JAX keeps what it fetched with the array, so each time it is another one."""
    there = jax.block_until_ready(jnp.asarray(inputs.reals(n)))
    copied = jax.jit(lambda x: x + 0.0)
    held = [None]

    def run():
        fresh = jax.block_until_ready(copied(there))
        begin = time.perf_counter()
        held[0] = np.array(fresh)
        return 8e-9 * n / (time.perf_counter() - begin)

    return Work(run, lambda: [held[0]])


def branches(n, count, branches, threads):
    links = [(float(a), float(b)) for a, b in inputs.chain_links()]

    def function(*starts):
        planes = []
        for x in starts:
            for a, b in links:
                x = a * x + b
                planes.append(x)
        return planes

    starts = [jnp.asarray(inputs.chain_start(n)) for _ in range(branches)]
    return work(jax.jit(function), *starts, units=count)


CASES = {
    "launch": launch,
    "chain": chain,
    "oscillator": oscillator,
    "two_body": two_body,
    "two_body_vjp": two_body_vjp,
    "mixed": mixed,
    "axpy": axpy,
    "sum": total,
    "branches": branches,
    "send": send,
    "fetch": fetch,
}


def first_result():
    n = 1000
    x, v, w = jnp.ones(n), jnp.zeros(n), jnp.linspace(1, 3, n)
    jax.block_until_ready(w)
    begin = time.perf_counter()

    @jax.jit
    def run(x, v, w):
        def step(_, now):
            x, v = now
            return x + 1e-3 * v, v - 1e-3 * w * w * x

        return jax.lax.fori_loop(0, 1000, step, (x, v))

    jax.block_until_ready(run(x, v, w))
    return time.perf_counter() - begin
