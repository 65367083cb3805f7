"""What samples make together: reduce nodes, Reduce and Accum arguments."""

from __future__ import annotations

import numpy as np
import pytest

import eagle
from eagle import Accum, Index, Mutable, Param, Reduce, Scalar, Terminated, Vector, kernel

# ---- eagle.reduce


def reduced(session, x, **options):
    x = session.asarray(x)
    out = session.zeros(() if x.ndim == 1 else x.shape[:1], dtype=x.dtype)
    eagle.Graph(session).add_node(eagle.reduce(x, out, **options)).build().launch()
    return out


def test_three_numbers_add_in_the_documented_order(session):
    assert reduced(session, [1e16, 1.0, -1e16]) == (1e16 - 1e16) + 1.0


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("sum", np.int64, -10),
        ("max", np.int32, 3),
        ("min", np.float32, -9.0),
        ("max", np.float64, 3.0),
    ],
)
def test_each_op_of_each_dtype(session, op, dtype, expected):
    assert reduced(session, np.array([1, -9, 3, -5], dtype), op=op) == expected


def test_bools_and_rows(session):
    x = np.array([[True, True], [True, False], [False, False]])
    assert reduced(session, x, op="all").tolist() == [True, False, False]
    assert reduced(session, x, op="any").tolist() == [True, True, False]


def test_nan_and_zeros(session):
    assert np.isnan(reduced(session, [1.0, np.nan, 2.0], op="max"))
    assert not np.signbit(reduced(session, [-0.0, 0.0], op="max"))
    assert np.signbit(reduced(session, [0.0, -0.0], op="min"))
    assert np.signbit(reduced(session, [-0.0] * 300))
    assert not np.signbit(reduced(session, [-0.0] * 300, compensated=True))


def test_compensated_sums_keep_what_rounding_loses(session):
    assert reduced(session, [1.0, 1e16, -1e16]) == 0.0
    assert reduced(session, [1.0, 1e16, -1e16], compensated=True) == 1.0


def test_rows_are_reduced_by_themselves(session):
    x = np.random.default_rng(1).normal(size=(7, 1000))
    found = reduced(session, x)
    assert found.tolist() == [float(reduced(session, row)) for row in x]


@pytest.mark.parametrize(
    ("x", "out", "options", "words"),
    [
        (np.zeros(0), np.zeros(1), {}, ["x: ", "at least one element"]),
        (np.zeros(4), np.zeros(2), {}, ["out: ", "one element"]),
        (np.zeros((2, 4)), np.zeros(1), {}, ["out: ", "(2,)"]),
        (np.zeros(4), np.zeros(1, int), {}, ["out: ", "float64", "int64"]),
        (np.zeros(4, int), np.zeros(1, int), {"compensated": True}, ["compensated: "]),
        (np.zeros(4, bool), np.zeros(1, bool), {}, ["op: ", "'sum'", "bool"]),
        (np.zeros(4), np.zeros(1), {"op": "all"}, ["op: ", "'all'", "float64"]),
        (np.zeros(4), np.zeros(1), {"op": "mean"}, ["op: ", "'mean'"]),
        (np.zeros(8)[::2], np.zeros(1), {}, ["x ", "not contiguous"]),
    ],
)
def test_refusals_name_the_argument(local, x, out, options, words):
    with pytest.raises(eagle.EagleError) as refused:
        eagle.Graph(local).add_node(eagle.reduce(x, out, **options)).build()
    for word in words:
        assert word in str(refused.value)


def test_out_within_x_is_refused(local):
    x = np.zeros(8)
    with pytest.raises(eagle.EagleError, match="shares bytes with x"):
        eagle.Graph(local).add_node(eagle.reduce(x, x[2:3])).build()


@pytest.mark.parametrize(("x", "options"), [([1.0], {}), (np.zeros(2), {"op": 3}), (np.zeros(2), {"compensated": 1})])
def test_other_things_are_type_errors(x, options):
    with pytest.raises(TypeError):
        eagle.reduce(x, np.zeros(1), **options)


def test_in_a_graph_it_has_edges_a_label_and_a_picture(session):
    @kernel
    def square(x: Scalar) -> Scalar:
        y = x * x
        return y

    x, y, total = session.asarray(np.arange(1000.0)), session.zeros(1000), session.zeros(1)
    g = eagle.Graph(session).add(eagle.plan(square).bind(x=x, y=y)).add_node(eagle.reduce(y, total))
    g.build().launch()
    assert total[0] == 332833500.0
    assert g.node_labels() == ["square", "reduce"]
    assert [(e.src, e.dst, e.plane, e.kind) for e in g.edges()] == [(0, 1, "y", "RAW")]
    assert "reduce" in str(g)


# ---- Reduce


@kernel
def statistics(x: Scalar) -> {"total": Reduce("sum"), "least": Reduce("min"), "positive": Reduce("all")}:
    return {"total": x * x, "least": x, "positive": x > 0}


def test_reductions_come_back_by_name(session):
    x = np.random.default_rng(2).normal(size=5000)
    found = statistics(session.asarray(x), session=session)
    assert found["total"] == reduced(session, x * x)
    assert found["least"] == x.min()
    assert not found["positive"]
    assert {name: array.shape for name, array in found.items()} == {"total": (1,), "least": (1,), "positive": (1,)}


@pytest.mark.parametrize("n", [1, 7, 255, 256, 257, 4097, 20_000])
def test_a_reduction_is_that_of_the_output(session, n):
    @kernel
    def both(x: Scalar) -> tuple[Scalar, Reduce("sum"), Reduce("max")]:
        y = x * 1.1 - 0.2
        total, most = y, y
        return y, total, most

    y, total, most = both(session.asarray(np.random.default_rng(n).normal(size=n)), session=session)
    assert total[0] == reduced(session, y)
    assert most[0] == y.max()


def test_as_an_argument_it_is_assigned(session):
    @kernel
    def count(x: Scalar, done: Terminated, live: Reduce("sum", Index)):
        live = 1
        done = x < 0

    x = session.asarray([1.0, -1.0, 2.0, 3.0])
    done = session.asarray([False, False, True, False])
    bound = eagle.plan(count).bind(x=x, done=done).launch()
    assert bound.planes["live"].tolist() == [3]
    assert bound.launch().planes["live"].tolist() == [2]


def test_text_annotations_are_read(session):
    summed = eagle.kernel(source="def summed(x: Scalar) -> Reduce('sum'):\n    return 1.0 * x\n")
    assert summed(session.asarray([1.0, 2.0]), session=session).tolist() == [3.0]


# ---- Accum


@kernel
def histogram(key: Index, weight: Scalar, h: Accum[Scalar]):
    h.add(weight, at=key)


def expected_histogram(key, weight, cells):
    h = np.zeros(cells)
    inside = (key >= 0) & (key < cells)
    np.add.at(h, key[inside], weight[inside])
    return h


@pytest.mark.parametrize("cells", [1, 10, 5000])
@pytest.mark.parametrize("n", [1, 9, 1000, 100_000])
def test_a_histogram_has_numpys_bits_and_counts_what_it_drops(session, n, cells):
    random = np.random.default_rng(n + cells)
    key, weight = random.integers(-1, cells + 1, n), random.normal(size=n)
    h = session.zeros(cells)
    bound = eagle.plan(histogram).bind(key=session.asarray(key), weight=session.asarray(weight), h=h).launch()
    assert np.array_equal(h, expected_histogram(key, weight, cells))
    assert bound.report.dropped == np.sum((key < 0) | (key >= cells))


def test_a_histogram_of_ones_is_bincount(session):
    @kernel
    def counts(key: Index, h: Accum[Index]):
        h.add(1, at=key)

    key = np.random.default_rng(3).integers(0, 50, 10_000)
    h = session.zeros(50, dtype=int)
    counts(session.asarray(key), h, session=session)
    assert np.array_equal(h, np.bincount(key, minlength=50))


def test_axes_vectors_and_several_adds_a_sample(session):
    @kernel
    def deposit(p: Vector[2], i: Index, grid: Accum[Vector[2], "row":3, "column":4], hits: Accum["row":3, "column":4]):
        grid.add(p, row=i, column=i + 1)
        if p[0] > 0:
            hits.add(1.0, at=(i, 0))
            grid.add(-p, at=(i, 0))

    random = np.random.default_rng(4)
    p, i = random.normal(size=(2, 500)), random.integers(-1, 4, 500)
    grid, hits = session.zeros((2, 12)), session.zeros((3, 4))
    deposit(session.asarray(p), session.asarray(i), grid, hits, session=session)
    wanted, wanted_hits = np.zeros((2, 3, 4)), np.zeros((3, 4))
    for sample in range(500):
        k = i[sample]
        if 0 <= k < 3:
            wanted[:, k, k + 1] += p[:, sample]
            if p[0, sample] > 0:
                wanted_hits[k, 0] += 1
                wanted[:, k, 0] += -p[:, sample]
    assert np.array_equal(grid.reshape(2, 3, 4), wanted)
    assert np.array_equal(hits, wanted_hits)


def test_adds_in_loops_keep_the_order_of_samples(session):
    @kernel
    def scatter(x: Scalar, n: Index, h: Accum[Scalar]):
        for k in eagle.bounded(range(n), 100):
            if k % 2 == 0:
                h.add(x, at=k)

    random = np.random.default_rng(5)
    x, n = random.normal(size=3000), random.integers(0, 20, 3000)
    h = session.zeros(16)
    bound = eagle.plan(scatter).bind(x=session.asarray(x), n=session.asarray(n), h=h).launch()
    wanted = np.zeros(20)
    for value, trips in zip(x, n):
        wanted[0:trips:2] += value
    assert np.array_equal(h, wanted[:16])
    assert bound.report.dropped == np.sum(n > 16) + np.sum(n > 18)


def test_an_accumulator_starts_from_what_it_holds(session):
    h = session.asarray([0.5, 1.5])
    bound = eagle.plan(histogram).bind(key=session.asarray([0, 0, 1]), weight=session.asarray([1.0, 2.0, 4.0]), h=h)
    bound.launch().launch()
    assert h.tolist() == [6.5, 9.5]


def test_simulate_adds_step_by_step(session):
    @kernel
    def walk(x: Mutable[Scalar], t_end: Param, done: Terminated, visits: Accum[Scalar], live: Reduce("sum")):
        x = x + 1
        visits.add(x, at=eagle.step_index())
        live = 1.0
        done = x >= t_end

    x = session.asarray(np.arange(4.0))
    visits, live = session.zeros(5), session.zeros(1)
    result = eagle.simulate(
        walk, x=x, t_end=4.0, done=session.zeros(4, dtype=bool), visits=visits, live=live, max_steps=10
    )
    assert (result.status, result.steps) == ("finished", 4)
    # The sample that starts at 3 finishes in the first step, and so on.
    assert visits.tolist() == [1 + 2 + 3 + 4, 2 + 3 + 4, 3 + 4, 4, 0]
    assert live.tolist() == [1.0]


def test_in_a_graph_an_accumulator_is_read_and_written(session):
    key, weight = session.asarray([0, 1, 1]), session.asarray([1.0, 2.0, 3.0])
    h, total = session.zeros(2), session.zeros(1)
    g = eagle.Graph(session)
    g.add(eagle.plan(histogram).bind(key=key, weight=weight, h=h), name="fill").add_node(eagle.reduce(h, total))
    g.add(eagle.plan(histogram).bind(key=key, weight=weight, h=h), name="again")
    assert [(e.src, e.dst, e.plane, e.kind) for e in g.edges()] == [
        (0, 1, "h", "RAW"),
        (0, 2, "h", "RAW"),
        (0, 2, "h", "WAW"),
        (0, 2, "h", "WAR"),
        (1, 2, "x", "WAR"),
    ]
    g.build().launch()
    assert (h.tolist(), total.tolist()) == ([2.0, 10.0], [6.0])


# ---- refusals of the front end


def refusal_of(text: str) -> str:
    with pytest.raises(eagle.KernelSyntaxError) as refused:
        eagle.kernel(source=text)(np.zeros(2), np.zeros(2, int), np.zeros(2))
    return str(refused.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("h.add(x)", ["takes 1 index", "h.add(value, at=i)"]),
        ("h.add(x, i)", ["h.add(value, at=i)"]),
        ("h.add(x, at=x)", ["integer"]),
        ("h.add(x, at=(i, i))", ["takes 1 index"]),
        ("h.add(x > 0, at=i)", ["float(condition)"]),
        ("y = h.add(x, at=i)", ["gives no value"]),
        ("y = h.at(i)", ["never read"]),
        ("y = h[i]", ["never read"]),
        ("y = h + 1", ["never read"]),
        ("h = x", ["only added to", "h.add(value, at=i)"]),
        ("h.sub(x, at=i)", ["h.add(value, at=i)"]),
    ],
)
def test_an_accum_is_only_added_to(line, words):
    found = refusal_of(f"def f(x: Scalar, i: Index, h: Accum[Scalar]):\n    {line}\n")
    for word in words:
        assert word in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x: Scalar, i: Index, h: Mutable[Scalar]) -> Reduce('mean'):\n    return x\n", ["Reduce('mean')"]),
        ("def f(x: Scalar, i: Index, h: Mutable[Scalar]) -> Reduce(x):\n    return x\n", ["not a role"]),
        ("def f(x: Scalar, i: Index, h: Mutable[Scalar]) -> Reduce('all'):\n    return 1.0 * x\n", ["comparison"]),
        ("def f(x: Scalar, i: Index, s: Reduce('sum')):\n    if x > 0:\n        s = x\n", ["'s'", "every path"]),
    ],
)
def test_reductions_are_refused_where_they_cannot_be(text, words):
    found = refusal_of(text)
    for word in words:
        assert word in found


def test_roles_refuse_what_they_cannot_be():
    with pytest.raises(TypeError, match="expected"):
        Reduce("mean")
    with pytest.raises(TypeError, match="conditions"):
        Reduce("all", Index)
    with pytest.raises(TypeError, match="Accum"):
        Accum[Param]


@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_a_call_of_no_samples_gives_what_changes_nothing(session, real):
    @kernel
    def all_of(
        x: Scalar, i: Index
    ) -> {
        "total": Reduce("sum"),
        "most": Reduce("max"),
        "least": Reduce("min"),
        "count": Reduce("sum", Index),
        "first": Reduce("min", Index),
        "every": Reduce("all"),
        "some": Reduce("any"),
    }:
        return {"total": x, "most": x, "least": x, "count": i, "first": i, "every": x > 0, "some": x > 0}

    nothing = session.zeros(0, dtype=real), session.zeros(0, dtype=np.int64)
    found = {name: array.tolist() for name, array in all_of(*nothing, session=session).items()}
    assert found == {
        "total": [0.0],
        "most": [-np.inf],
        "least": [np.inf],
        "count": [0],
        "first": [2**63 - 1],
        "every": [True],
        "some": [False],
    }
    held = session.full(1, 7.0, dtype=real)
    all_of(*nothing, total=held, session=session)
    assert held.tolist() == [7.0]
