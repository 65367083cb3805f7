"""numba: plain loops, compiled; `prange` where the work is for a team."""

from __future__ import annotations

import math
import time

import numba
import numpy as np
from cases import inputs
from numba import njit, prange
from work import Work, state


@njit
def affine(x, y, a, b):
    for i in range(x.size):
        y[i] = a * x[i] + b


def launch(n, count, threads):
    x, y = inputs.chain_start(n), np.zeros(n)

    def run():
        for _ in range(count):
            affine(x, y, 1.5, 0.25)

    return Work(run, lambda: [y], units=count)


@njit
def stored_chain(planes, links):
    for k in range(links.shape[0]):
        affine(planes[k], planes[k + 1], links[k, 0], links[k, 1])


@njit
def scratch_chain(x, y, links):
    for i in range(x.size):
        value = x[i]
        for k in range(links.shape[0]):
            value = links[k, 0] * value + links[k, 1]
        y[i] = value


def chain(n, count, scratch, threads):
    planes, links = np.zeros((17, n)), inputs.chain_links()
    planes[0] = inputs.chain_start(n)

    def run():
        for _ in range(count):
            if scratch:
                scratch_chain(planes[0], planes[16], links)
            else:
                stored_chain(planes, links)

    return Work(run, lambda: [planes[16]] if scratch else list(planes[1:]), units=count)


@njit(parallel=True)
def step_oscillators(x, v, t, omega, t_end, dt):
    for i in prange(x.size):
        xi, vi, ti, w = x[i], v[i], t[i], omega[i]
        while ti < t_end[i]:
            xi, vi = xi + dt * vi, vi - dt * w * w * xi
            ti += dt
        x[i], v[i], t[i] = xi, vi, ti


@njit
def slope(x, v, w, c):
    return -(w * w * x) - c * v


@njit(parallel=True)
def step_rk4(x, v, t, omega, t_end, dt, c):
    half = 0.5 * dt
    for i in prange(x.size):
        xi, vi, ti, w = x[i], v[i], t[i], omega[i]
        while ti < t_end[i]:
            k1x, k1v = vi, slope(xi, vi, w, c)
            k2x, k2v = vi + half * k1v, slope(xi + half * k1x, vi + half * k1v, w, c)
            k3x, k3v = vi + half * k2v, slope(xi + half * k2x, vi + half * k2v, w, c)
            k4x, k4v = vi + dt * k3v, slope(xi + dt * k3x, vi + dt * k3v, w, c)
            xi += dt / 6 * (k1x + 2 * k2x + 2 * k3x + k4x)
            vi += dt / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)
            ti += dt
        x[i], v[i], t[i] = xi, vi, ti


def oscillator(n, spread, threads):
    numba.set_num_threads(threads)
    s, reset = state(inputs.oscillators(n, spread))
    run = lambda: step_oscillators(s["x"], s["v"], s["t"], s["omega"], s["t_end"], inputs.DT)  # noqa: E731
    return Work(run, lambda: [s[k] for k in ("x", "v", "t")], reset)


def rk4(n, spread, threads):
    numba.set_num_threads(threads)
    s, reset = state(inputs.oscillators(n, spread))
    arrays = [s[k] for k in ("x", "v", "t", "omega", "t_end")]
    return Work(lambda: step_rk4(*arrays, inputs.DT, inputs.DAMPING), lambda: [s[k] for k in ("x", "v", "t")], reset)


@njit
def gravity(x, y, z):
    squared = x * x + y * y + z * z
    distance = math.sqrt(squared)
    ratio = 5.0 * z * z / squared
    factor = 1.5 * 1e-3 * 1.0 * 0.9 * 0.9 / (squared * squared * distance)
    point = -1.0 / (squared * distance)
    in_plane = point + factor * (ratio - 1.0)
    return x * in_plane, y * in_plane, z * (point + factor * (ratio - 3.0))


@njit
def moved(x, y, z, k, by):
    return x + by * k[0], y + by * k[1], z + by * k[2]


@njit(parallel=True)
def step_satellites(r, v, t, t_end, h):
    for i in prange(t.size):
        p, s, ti = (r[0, i], r[1, i], r[2, i]), (v[0, i], v[1, i], v[2, i]), t[i]
        while ti < t_end[i]:
            k1r, k1v = s, gravity(*p)
            k2r = moved(s[0], s[1], s[2], k1v, h / 2)
            k2v = gravity(*moved(p[0], p[1], p[2], k1r, h / 2))
            k3r = moved(s[0], s[1], s[2], k2v, h / 2)
            k3v = gravity(*moved(p[0], p[1], p[2], k2r, h / 2))
            k4r = moved(s[0], s[1], s[2], k3v, h)
            k4v = gravity(*moved(p[0], p[1], p[2], k3r, h))
            p = (
                p[0] + h / 6 * (k1r[0] + 2 * k2r[0] + 2 * k3r[0] + k4r[0]),
                p[1] + h / 6 * (k1r[1] + 2 * k2r[1] + 2 * k3r[1] + k4r[1]),
                p[2] + h / 6 * (k1r[2] + 2 * k2r[2] + 2 * k3r[2] + k4r[2]),
            )
            s = (
                s[0] + h / 6 * (k1v[0] + 2 * k2v[0] + 2 * k3v[0] + k4v[0]),
                s[1] + h / 6 * (k1v[1] + 2 * k2v[1] + 2 * k3v[1] + k4v[1]),
                s[2] + h / 6 * (k1v[2] + 2 * k2v[2] + 2 * k3v[2] + k4v[2]),
            )
            ti += h
        r[0, i], r[1, i], r[2, i] = p
        v[0, i], v[1, i], v[2, i] = s
        t[i] = ti


def two_body(n, threads):
    numba.set_num_threads(threads)
    s, reset = state(inputs.satellites(n))
    arrays = [s[k] for k in ("r", "v", "t", "t_end")]
    return Work(lambda: step_satellites(*arrays, inputs.J2_STEP), lambda: [s[k] for k in ("r", "v", "t")], reset)


@njit(parallel=True)
def mixed_loop(x, y):
    for i in prange(x.size):
        v = x[i]
        size = abs(v)
        y[i] = math.sin(v) * math.exp(-v * v) + math.log1p(size) * math.tanh(v) + math.pow(size, 0.3)


def mixed(n, threads):
    numba.set_num_threads(threads)
    x, y = inputs.reals(n), np.zeros(n)
    return Work(lambda: mixed_loop(x, y), lambda: [y])


@njit(parallel=True)
def axpy_loop(x, y, a, b):
    for i in prange(x.size):
        y[i] = a * x[i] + b


def axpy(n, threads):
    numba.set_num_threads(threads)
    x, y = inputs.reals(n), np.zeros(n)
    return Work(lambda: axpy_loop(x, y, 3.0, 0.5), lambda: [y])


@njit
def scatter_loop(x, key, h):
    for i in range(x.size):
        h[key[i]] += x[i]


def scatter(n, cells, kind, threads):
    x, key, h = inputs.reals(n), inputs.keys(n, cells, kind), np.zeros(cells)
    return Work(lambda: scatter_loop(x, key, h), lambda: [h], lambda: h.fill(0.0))


CASES = {
    "launch": launch,
    "chain": chain,
    "oscillator": oscillator,
    "rk4": rk4,
    "two_body": two_body,
    "mixed": mixed,
    "axpy": axpy,
    "scatter": scatter,
}


def first_result():
    n = 1000
    x, v, t, omega = np.ones(n), np.zeros(n), np.zeros(n), np.linspace(1, 3, n)
    begin = time.perf_counter()

    @njit(parallel=True)
    def step(x, v, t, omega, dt, t_end):
        for i in prange(x.size):
            while t[i] < t_end:
                x[i], v[i] = x[i] + dt * v[i], v[i] - dt * omega[i] * omega[i] * x[i]
                t[i] += dt

    step(x, v, t, omega, 1e-3, 1.0)
    return time.perf_counter() - begin
