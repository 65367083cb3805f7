"""Arrays with a name: published, opened and taken back."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Param, Scalar


@eagle.kernel
def scaled(x: Scalar, a: Param) -> Scalar:
    y = a * x
    return y


def test_a_published_array_is_opened_by_its_name(session):
    x = session.publish(session.full(3, 1.5), "speed")
    opened = session.open("speed")
    x[0] = 9.0
    assert opened.tolist() == [9.0, 1.5, 1.5]
    assert scaled(opened, 2.0).tolist() == [18.0, 3.0, 3.0]
    session.withdraw("speed")
    with pytest.raises(ValueError, match="speed"):
        session.open("speed")


def test_dtype_and_shape_are_those_of_the_array(session):
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.bool_):
        made = session.zeros((2, 3), dtype)
        made[1, 2] = 1
        session.publish(made[:, 1:], "part")
        opened = session.open("part")
        assert (opened.dtype, opened.shape) == (np.dtype(dtype), (2, 2))
        assert opened.tolist() == made[:, 1:].tolist()
        session.withdraw("part")


def test_a_name_is_given_once_and_only_to_arrays_of_the_session(session):
    x = session.publish(session.zeros(3), "x")
    with pytest.raises(ValueError, match="withdraw"):
        session.publish(x, "x")
    with pytest.raises(ValueError, match="name"):
        session.publish(x, "")
    with pytest.raises(ValueError, match="mode"):
        session.publish(x, "y", mode="w")
    with pytest.raises(ValueError):
        session.publish(np.zeros(3), "z")
    with pytest.raises(TypeError):
        session.publish(x, 3)
    session.withdraw("x")
    with pytest.raises(ValueError, match="x"):
        session.withdraw("x")


def test_named_arrays_are_found_while_somebody_holds_them(session):
    x = session.full(3, 1.0, name="speed")
    assert session.plane("speed") is x
    del x
    with pytest.raises(ValueError, match="speed"):
        session.plane("speed")


def test_planes_say_how_they_are_reached(session):
    x = session.zeros(100_000, name="large")
    rows = {plane.name: plane for plane in session.planes()}
    assert x.nbytes <= rows["large"].nbytes <= x.nbytes + 4096  # in a page of which the array begins
    assert rows["large"].transport in ("memfd", "borrowed") and not rows["large"].read_only


@pytest.mark.parametrize("tls", [3, ("ca",), ("a", "b", 3)])
def test_tls_is_paths(tls):
    with pytest.raises(TypeError, match="tls"):
        eagle.connect("dns:localhost:1", tls=tls)


def test_options_of_connections_over_tcp_are_checked(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        eagle.connect("dns:localhost:1", tls=tmp_path / "none.pem")
    with pytest.raises(ValueError, match="lease"):
        eagle.connect("dns:localhost:1", lease=0)
    with pytest.raises(ConnectionError, match="localhost:1"):
        eagle.connect("dns:localhost:1", timeout=5.0)
    with pytest.raises(ValueError, match="port"):
        eagle.connect("dns:localhost")
