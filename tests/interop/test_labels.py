"""Kernels over `xarray.DataArray`: labels in, labels out, and no copies between."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from conftest import address
from eagle import Mutable, Param, Scalar, Table, Vector, kernel


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
