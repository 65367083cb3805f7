"""Tables: look-ups shared by all samples."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Scalar, Table, Vector, kernel


@kernel
def gather(i: Index, t: Table[Scalar]) -> Scalar:
    y = t.at(i)
    return y


@kernel
def plane(i: Index, j: Index, t: Table["row":3, "column":4]) -> tuple[Scalar, Scalar]:
    a, b = t.at(i, j), t.at(column=i, row=j)
    return a, b


def test_gather_has_the_documented_values(session):
    i = session.asarray((7 * np.arange(8) + 3) % 8)
    t = session.asarray(3.0 * np.arange(8))
    assert gather(i, t, session=session).tolist() == [9, 6, 3, 0, 21, 18, 15, 12]


def test_indices_outside_take_the_nearest_element_and_are_counted(session):
    i = session.asarray([-1, 0, 4, 5, 2**62, -(2**63)])
    bound = eagle.plan(gather).bind(i=i, t=session.asarray(np.arange(5.0))).launch()
    assert bound.planes["y"].tolist() == [0.0, 0.0, 4.0, 4.0, 4.0, 0.0]
    assert (bound.report.clamped, bound.report.zero_divisions) == (4, 0)
    assert bound.report.host.pid == session.info().host.pid


def test_indices_that_a_sample_does_not_ask_for_are_not_counted(session):
    @kernel
    def safe(x: Mutable[Scalar], i: Index, t: Table[Scalar]):
        x = t.at(i) if 0 <= i < 3 else -1
        if i >= 0 and i < 3 and t.at(i) > 0:
            x = x * 10

    x = session.zeros(5)
    bound = eagle.plan(safe).bind(x=x, i=session.asarray([-1, 0, 1, 2, 3]), t=session.asarray([0.0, 5.0, 7.0])).launch()
    assert x.tolist() == [-1.0, 0.0, 50.0, 70.0, -1.0]
    assert bound.report.clamped == 0


def test_named_axes_are_row_major_and_each_is_clamped(session):
    values = np.arange(12.0).reshape(3, 4)
    i, j = np.array([0, 1, 2, 9, -1]), np.array([3, 2, -5, 9, 0])
    a_expected = values[np.clip(i, 0, 2), np.clip(j, 0, 3)]
    b_expected = values[np.clip(j, 0, 2), np.clip(i, 0, 3)]
    for table in (values, values.ravel()):
        bound = eagle.plan(plane).bind(
            i=session.asarray(i), j=session.asarray(j), t=session.asarray(np.ascontiguousarray(table))
        )
        a, b = bound.launch().returned()
        assert (a.tolist(), b.tolist()) == (a_expected.tolist(), b_expected.tolist())
        # A look-up counts once, however many of its indices are outside.
        outside = [(p < 0) | (p > 2) | (q < 0) | (q > 3) for p, q in ((i, j), (j, i))]
        assert bound.report.clamped == sum(int(looked_up.sum()) for looked_up in outside)


def test_elements_may_be_vectors_and_integers(session):
    @kernel
    def rows(i: Index, t: Table[Vector[3], "row":2], n: Table[Index]) -> tuple[Vector[3], Index]:
        v, m = t.at(row=i) * 2, n.at(i) + n.at(-1)
        return v, m

    t, n = np.arange(6.0).reshape(3, 2), np.array([10, 20, 30])
    v, m = rows(*(session.asarray(a) for a in (np.array([1, 0]), t, n)), session=session)
    assert v.tolist() == (t[:, [1, 0]] * 2).tolist()
    assert m.tolist() == [30, 20]


def test_float32_planes_have_float32_tables(session):
    i, t = session.asarray([1, 0]), session.asarray([0.1, 0.2], dtype="float32")
    assert gather(i, t, session=session).tobytes() == np.array([0.2, 0.1], np.float32).tobytes()


def test_the_number_of_samples_is_not_that_of_the_table(session):
    i, t = session.zeros(0, int), session.asarray([1.0])
    assert gather(i, t, session=session).shape == (0,)
    k = eagle.kernel(source="def f(t: Table[Scalar]) -> Scalar:\n    return t.at(eagle.sample_index())")
    with pytest.raises(TypeError, match="how many samples"):
        k(t, session=session)
    assert k(t, out=session.zeros(3), session=session).tolist() == [1.0, 1.0, 1.0]


WRONG = [
    (gather, {"t": ("float64", (0,))}, ValueError, ["'t'", "at least one element"]),
    (gather, {"i": ("int32", (4,))}, TypeError, ["'i'", "expected int64", "int32", "dtype=np.int64"]),
    (gather, {"t": ("int64", (4,))}, TypeError, ["'t'", "float64", "int64"]),
    (gather, {"t": ("float64", (2, 2))}, ValueError, ["'t'", "(2, 2)"]),
    (plane, {"t": ("float64", (4, 3))}, ValueError, ["'t'", "(4, 3)"]),
    (plane, {"t": ("float64", (11,))}, ValueError, ["'t'", "12 elements", "11"]),
]


@pytest.mark.parametrize(("k", "wrong", "error", "words"), WRONG)
def test_arrays_that_do_not_fit_are_refused_by_argument(session, k, wrong, error, words):
    shapes = {"i": ("int64", (4,)), "j": ("int64", (4,)), "t": ("float64", (12,)), **wrong}
    arrays = {name: session.zeros(*shapes[name][::-1]) for name in k.arguments}
    with pytest.raises(error) as caught:
        eagle.plan(k).bind(session=session, **arrays)
    assert isinstance(caught.value, eagle.EagleError)
    for word in words:
        assert word in str(caught.value)


def test_a_table_is_read_by_graphs_and_makes_edges(session):
    @kernel
    def fill(t: Mutable[Scalar]):
        t = t + 1

    t, i = session.asarray([1.0, 2.0, 3.0]), session.asarray([2, 0])
    g = eagle.Graph(session).add(eagle.plan(fill).bind(t=t))
    g.add(read := eagle.plan(gather).bind(i=i, t=t)).build().launch(2)
    assert [edge.kind for edge in g.edges()] == ["RAW"]
    assert read.planes["y"].tolist() == [5.0, 3.0]
    assert g.report.clamped == 0
