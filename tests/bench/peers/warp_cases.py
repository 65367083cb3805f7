"""Warp, on the CPU or a GPU: a kernel a node, replayed as a graph where this version captures one there."""

from __future__ import annotations

import tempfile
import time

import numpy as np
import warp as wp
from cases import inputs
from work import DEVICE, Work

wp.config.quiet = True
wp.init()


@wp.kernel
def affine(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64), a: wp.float64, b: wp.float64):
    i = wp.tid()
    y[i] = a * x[i] + b


@wp.kernel
def step_oscillators(
    x: wp.array(dtype=wp.float64),
    v: wp.array(dtype=wp.float64),
    t: wp.array(dtype=wp.float64),
    omega: wp.array(dtype=wp.float64),
    t_end: wp.array(dtype=wp.float64),
    dt: wp.float64,
):
    i = wp.tid()
    xi = x[i]
    vi = v[i]
    ti = t[i]
    w = omega[i]
    while ti < t_end[i]:
        nx = xi + dt * vi
        vi = vi - dt * w * w * xi
        xi = nx
        ti = ti + dt
    x[i] = xi
    v[i] = vi
    t[i] = ti


def array(values):
    return wp.array(values, dtype=wp.float64, device=DEVICE)


def replayed(nodes, count, answer, waits=False):
    """The launches as one captured graph; ``waits``: for each replay."""
    wp.load_module(device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        for n, (x, y, a, b) in nodes:
            wp.launch(affine, dim=n, inputs=[x, y, wp.float64(a), wp.float64(b)], device=DEVICE)

    def run():
        for _ in range(count):
            wp.capture_launch(capture.graph)
            if waits:
                wp.synchronize_device(DEVICE)
        wp.synchronize_device(DEVICE)

    return Work(run, answer, units=count)


def launch(n, count, threads):
    x, y = array(inputs.chain_start(n)), array(np.zeros(n))
    return replayed([(n, (x, y, 1.5, 0.25))], count, lambda: [y.numpy()], waits=True)


def chain(n, count, scratch, threads):
    planes = [array(inputs.chain_start(n)), *(array(np.zeros(n)) for _ in range(16))]
    links = inputs.chain_links()
    nodes = [(n, (planes[k], planes[k + 1], *links[k])) for k in range(16)]
    return replayed(nodes, count, lambda: [p.numpy() for p in (planes[16:] if scratch else planes[1:])])


def oscillator(n, spread, threads):
    start = inputs.oscillators(n, spread)
    s = {name: array(values) for name, values in start.items()}

    def reset():
        for name, values in start.items():
            s[name].assign(values)

    def run():
        arrays = [s[k] for k in ("x", "v", "t", "omega", "t_end")]
        wp.launch(step_oscillators, dim=n, inputs=[*arrays, wp.float64(inputs.DT)], device=DEVICE)
        wp.synchronize_device(DEVICE)

    return Work(run, lambda: [s[k].numpy() for k in ("x", "v", "t")], reset)


def axpy(n, threads):
    x, y = array(inputs.reals(n)), array(np.zeros(n))
    return replayed([(n, (x, y, 3.0, 0.5))], 1, lambda: [y.numpy()])


def total(n, threads):
    x, out = array(inputs.reals(n)), array(np.zeros(1))

    def run():
        wp.utils.array_sum(x, out=out)
        wp.synchronize_device(DEVICE)

    return Work(run, lambda: [out.numpy()])


def send(n, threads):
    """Gigabytes a second to the device."""
    from_host = wp.array(inputs.reals(n), dtype=wp.float64, device="cpu")
    to = array(np.zeros(n))

    def run():
        begin = time.perf_counter()
        wp.copy(to, from_host)
        wp.synchronize_device(DEVICE)
        return 8e-9 * n / (time.perf_counter() - begin)

    return Work(run, lambda: [to.numpy()])


def fetch(n, threads):
    """Gigabytes a second from there."""
    there = array(inputs.reals(n))
    held = [None]

    def run():
        begin = time.perf_counter()
        held[0] = there.numpy()
        return 8e-9 * n / (time.perf_counter() - begin)

    return Work(run, lambda: [held[0]])


CASES = {
    "launch": launch,
    "chain": chain,
    "oscillator": oscillator,
    "axpy": axpy,
    "sum": total,
    "send": send,
    "fetch": fetch,
}


def first_result():
    n = 1000
    x, v, t = array(np.ones(n)), array(np.zeros(n)), array(np.zeros(n))
    omega, end = array(np.linspace(1, 3, n)), array(np.ones(n))
    with tempfile.TemporaryDirectory() as fresh:  # nothing that an earlier run has compiled
        wp.config.kernel_cache_dir = fresh
        begin = time.perf_counter()
        wp.launch(step_oscillators, dim=n, inputs=[x, v, t, omega, end, wp.float64(1e-3)], device=DEVICE)
        wp.synchronize_device(DEVICE)
        return time.perf_counter() - begin
