"""Arrays of JAX and pyarrow, both ways."""

from __future__ import annotations

import eagle
import numpy as np
import pytest
from conftest import address
from eagle import Index, Scalar, Table, kernel


@kernel
def square(x: Scalar) -> Scalar:
    y = x * x
    return y


def test_a_jax_array_is_read_where_it_lies(jax):
    values = jax.numpy.arange(64.0)
    found = eagle.interop.import_buffer(values)
    assert address(found) == values.unsafe_buffer_pointer()
    assert not found.flags.writeable
    with eagle.local(threads=1):
        assert square(found).tolist() == [float(i * i) for i in range(64)]


def test_a_launch_over_a_jax_array_that_is_gone_is_refused_by_name(jax):
    values = jax.numpy.arange(4.0)
    with eagle.local(threads=1):
        bound = eagle.plan(square).bind(x=eagle.interop.import_buffer(values)).launch()
        values.delete()
        with pytest.raises(eagle.GraphState, match=r"node 'square': plane 'x'.* it is gone now"):
            bound.launch()


def test_a_plane_is_a_jax_array(session, jax):
    plane = session.asarray(np.arange(8.0))
    values = eagle.interop.as_jax(plane)
    assert values.unsafe_buffer_pointer() == address(plane)
    assert jax.numpy.sum(values) == 28.0


def test_what_jax_would_copy_is_refused(session, jax):
    with pytest.raises(eagle.CopyBoundPlane, match="as_jax: JAX would copy this array"):
        eagle.interop.as_jax(session.zeros(64)[1:])


def test_arrow_buffers_and_arrays_are_read_where_they_lie(pyarrow):
    numbers = pyarrow.array([1.0, 2.0, 3.0])
    found = eagle.interop.import_buffer(numbers)
    assert address(found) == numbers.buffers()[1].address
    assert not found.flags.writeable
    buffer = pyarrow.py_buffer(bytearray(16))
    assert address(eagle.interop.import_buffer(buffer)) == buffer.address
    with eagle.local(threads=1):
        assert square(found).tolist() == [1.0, 4.0, 9.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.array([1.0, None]),
        lambda a: a.array([True, False]),
        lambda a: a.chunked_array([[1.0], [2.0]]),
        lambda a: a.array(["x"]),
    ],
    ids=["nulls", "bits", "chunks", "texts"],
)
def test_arrow_arrays_without_plain_memory_are_refused_with_the_cure(pyarrow, make):
    with pytest.raises(TypeError, match=r"(?s)shows its memory in no way.*pass one chunk \(x\.combine_chunks\(\)\)"):
        eagle.interop.import_buffer(make(pyarrow))


def test_a_plane_is_an_arrow_array(session, pyarrow):
    plane = session.asarray(np.arange(5))
    made = eagle.interop.as_arrow(plane)
    assert made.buffers()[1].address == address(plane)
    assert made.to_pylist() == [0, 1, 2, 3, 4]
    assert pyarrow.compute.sum(made).as_py() == 10 if hasattr(pyarrow, "compute") else True
    with pytest.raises(eagle.CopyBoundPlane, match="as_arrow: expected one contiguous axis of numbers"):
        eagle.interop.as_arrow(session.zeros((2, 2)))


def test_arrow_indices_look_up_in_a_table_of_jax(jax, pyarrow):
    @kernel
    def look(i: Index, t: Table[Scalar]) -> Scalar:
        return t.at(i)

    rows, table = pyarrow.array([2, 0, 1]), jax.numpy.asarray([1.0, 10.0, 100.0])
    with eagle.local(threads=1):
        found = look(eagle.interop.import_buffer(rows), eagle.interop.import_buffer(table))
    assert found.tolist() == [100.0, 1.0, 10.0]
