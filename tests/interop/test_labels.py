"""Kernels and runs over `xarray.DataArray`: labels in, labels out, and no copies between."""

from __future__ import annotations

import os
import pickle

import eagle
import numpy as np
import pytest
from conftest import address
from eagle import Mutable, Param, Scalar, Table, Terminated, Vector, kernel


@kernel
def speed(u: Scalar, v: Scalar) -> Scalar:
    w = eagle.math.sqrt(u * u + v * v)
    return w


@kernel
def turn(p: Vector[3], a: Param) -> {"q": Vector[3], "height": Scalar}:
    return {"q": eagle.vector(a * p[1], p[0], p[2]), "height": p[2]}


@kernel
def add(x: Mutable[Scalar], t: Table[Scalar]):
    x = x + t.at(0)


@pytest.fixture
def grid(xarray):
    def made(values):
        return xarray.DataArray(
            np.asarray(values, float).reshape(2, 3),
            coords={"lat": [10.0, 20.0], "lon": [1.0, 2.0, 3.0], "zone": ("lat", ["a", "b"])},
            dims=("lat", "lon"),
        )

    return made


def test_dimensions_and_coordinates_come_back(grid, xarray):
    u, v = grid([3.0] * 6), grid([4.0] * 6)
    w = speed(u, v)
    assert isinstance(w, xarray.DataArray)
    assert w.dims == ("lat", "lon")
    assert w.name == "w"
    xarray.testing.assert_equal(w, grid([5.0] * 6))
    assert w.sel(lat=20.0, lon=3.0) == 5.0


def test_components_keep_their_dimension(xarray):
    p = xarray.DataArray(
        np.arange(12.0).reshape(3, 4), coords={"axis": ["x", "y", "z"], "time": [1, 2, 3, 4]}, dims=("axis", "time")
    )
    found = turn(p, 2.0)
    assert found["q"].dims == ("axis", "time")
    assert found["height"].dims == ("time",)
    assert found["q"].sel(axis="x").values.tolist() == [8.0, 10.0, 12.0, 14.0]
    assert found["height"].sel(time=4) == 11.0


def test_state_is_changed_where_it_lies(grid, xarray):
    x = grid(range(6))
    before = address(x.data)
    assert add(x, xarray.DataArray([10.0], dims=("row",))) is None
    assert address(x.data) == before
    assert x.values.ravel().tolist() == [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]


def test_planes_of_a_daemon_have_labels_too(grid, xarray):
    from eagle.interop.xarray import share

    with eagle.connect() as session:
        u = share(grid([3.0] * 6), session)
        w = speed(u, share(grid([4.0] * 6), session))
        assert session.owns(w.data)
        assert session.owns(u.data)
        xarray.testing.assert_equal(w, grid([5.0] * 6))


def test_private_arrays_are_refused_by_a_daemon_as_without_labels(grid):
    with eagle.connect() as session, pytest.raises(eagle.PrivateArray):
        speed(grid([3.0] * 6), grid([4.0] * 6), session=session)


def test_nothing_is_aligned_in_silence(grid):
    u = grid([3.0] * 6)
    with pytest.raises(ValueError, match=r"other coordinates along 'lon'; align them first: xarray\.align\(u, v\)"):
        speed(u, u.assign_coords(lon=[5.0, 6.0, 7.0]))
    with pytest.raises(
        ValueError, match=r"'v' has samples along lon=3, lat=2, and 'u' along lat=2, lon=3.*v\.transpose"
    ):
        speed(u, u.T)


def test_what_would_be_copied_is_refused(grid):
    u = grid([3.0] * 6)
    wide = u.isel(lon=slice(None, None, 2))
    with pytest.raises(
        eagle.CopyBoundPlane, match=r"argument 'u' of dimensions \('lat', 'lon'\).*would have to be copied"
    ):
        speed(wide, wide)


# ---- runs


@kernel
def fall(x: Mutable[Scalar], v: Mutable[Vector[2]], t: Mutable[Scalar], g: Table[Scalar], dt: Param, done: Terminated):
    x = x + dt * v[0]
    v = eagle.vector(v[0] - dt * g.at(0), v[1])
    t = t + dt
    done = x < 0.0


@kernel
def energy(x: Scalar, v: Vector[2]) -> Scalar:
    e = x + 0.5 * v[0] * v[0]
    return e


@pytest.fixture
def flight(grid, xarray):
    """The arguments of a run with labels, and of the same without."""
    x = grid([1.0, 2.0, 3.0, 4.0, 5.0, 0.5])
    x.attrs["units"] = "m"
    labelled = {
        "x": x,
        "v": xarray.concat([grid(range(6)), grid([0.0] * 6)], dim="way").assign_coords(way=["up", "east"]),
        "t": grid([0.0] * 6),
        "g": xarray.DataArray([9.0], dims=("row",)),
        "done": grid([0.0] * 6).astype(bool),
    }
    flat = {name: array.data.reshape(2, 6) if name == "v" else array.data.ravel() for name, array in labelled.items()}
    return labelled, {name: array.copy() for name, array in flat.items()}


def test_a_run_keeps_labels_and_computes_the_same(flight, grid, xarray):
    labelled, plain = flight
    before = address(labelled["x"].data)
    asked = {"max_steps": 7, "dt": 0.1, "record": ["x", "v"], "every": 2, "events": True}
    result = eagle.simulate([fall, energy], **asked, **labelled)
    flat = eagle.simulate([fall, energy], **asked, **plain)
    for name in ("x", "t", "e", "done"):
        assert isinstance(result[name], xarray.DataArray), name
        assert result[name].dims == ("lat", "lon")
        assert result[name].values.ravel().tobytes() == flat[name].tobytes(), name
        assert result[name].sel(lat=20.0).zone == "b"
    assert address(result.x.data) == before == address(labelled["x"].data)
    assert result.x.attrs == {"units": "m"}
    assert result.v.dims == ("way", "lat", "lon")
    assert result.v.sel(way="up").values.ravel().tobytes() == flat.v[0].tobytes()
    assert result.g.dims == ("row",)
    xarray.testing.assert_equal(result.finished, result["done"])
    for found, expected in (
        (result.stop_step, flat.stop_step),
        (result.t_stop, flat.t_stop),
        (result.steps_taken, flat.steps_taken),
    ):
        assert found.dims == ("lat", "lon")
        assert found.values.ravel().tobytes() == expected.tobytes()
    assert result.records["x"].dims == ("record_step", "lat", "lon")
    assert result.records["x"].record_step.values.tolist() == [0, 2, 4, 6]
    assert result.records["v"].dims == ("record_step", "way", "lat", "lon")
    for name in ("x", "v"):
        assert result.records[name].values.tobytes() == flat.records[name].tobytes()


def test_a_result_with_labels_can_be_pickled(flight, xarray):
    labelled, _ = flight
    result = eagle.simulate(fall, max_steps=3, dt=0.1, record=["x"], **labelled)
    again = pickle.loads(pickle.dumps(result))
    xarray.testing.assert_identical(again.x, result.x)
    xarray.testing.assert_identical(again.records["x"], result.records["x"])


def test_callables_and_simulations_see_labels(flight, xarray):
    labelled, _ = flight
    seen = []

    def low(planes):
        seen.append(planes.x.dims)
        return planes.x.sel(lon=3.0).min() < 0.2

    made = eagle.simulation(fall, max_steps=50, dt=0.1, until=low, every=1, **labelled)
    result = made.run()
    assert set(seen) == {("lat", "lon")}
    assert result.steps == len(seen)
    assert made.planes["t"].dims == ("lat", "lon")
    assert made.reset().planes["x"].values.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 0.5]]


def test_a_runner_keeps_labels(flight, xarray):
    labelled, _ = flight
    done = labelled.pop("done")
    runner = eagle.until_done(eagle.plan(fall), max_steps=100, terminated=done, dt=0.1, **labelled)
    assert runner.run().done
    assert runner.terminated.dims == ("lat", "lon")
    assert runner.finished == 6
    assert runner.result("x").sel(lat=10.0, lon=1.0) < 0.0


def test_a_run_in_a_daemon_has_labels_over_its_planes(flight, xarray):
    from eagle.interop.xarray import share

    labelled, plain = flight
    with eagle.connect() as session:
        shared = {name: share(array, session) for name, array in labelled.items()}
        result = eagle.simulate(fall, max_steps=5, dt=0.1, **shared)
        assert session.owns(result.x.data)
        assert result.report.host.pid != os.getpid()
        assert address(result.x.data) == address(shared["x"].data)
        flat = eagle.simulate(fall, max_steps=5, dt=0.1, session=eagle.local(), **plain)
        assert result.x.values.ravel().tobytes() == flat.x.tobytes()


def test_runs_refuse_labels_that_differ_by_name(flight, grid):
    labelled, _ = flight
    labelled["t"] = labelled["t"].assign_coords(lon=[5.0, 6.0, 7.0])
    with pytest.raises(ValueError, match=r"simulate: 't' and 'x' have other coordinates along 'lon'; align them"):
        eagle.simulate(fall, max_steps=3, dt=0.1, **labelled)
    labelled["t"] = grid([0.0] * 6).T
    with pytest.raises(ValueError, match=r"simulate: argument 't' has samples along lon=3, lat=2.*t\.transpose"):
        eagle.simulate(fall, max_steps=3, dt=0.1, **labelled)
    with pytest.raises(TypeError, match=r"diff\.simulate: kernel .fall.: argument .x.: expected a numpy array"):
        eagle.diff.simulate(fall, max_steps=3, dt=0.1, **flight[0])
