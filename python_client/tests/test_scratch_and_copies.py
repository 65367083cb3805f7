"""Copies between arrays and scratch planes, on both hosts."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conftest import running_daemon

import eagle
from eagle import Mutable, Param, Scalar, Terminated, Vector, kernel
from eagle.graph import opaque


@kernel
def twice(x: Scalar) -> Scalar:
    y = 2.0 * x
    return y


@kernel
def add_up(x: Scalar, y: Scalar) -> Scalar:
    z = x + y
    return z


@kernel
def swap(v: Vector[2]) -> Vector[2]:
    w = eagle.vector(v[1], v[0])
    return w


@kernel
def twice_once(x: Scalar, done: Terminated) -> Scalar:
    y = 2.0 * x
    done = x > 0
    return y


@kernel
def grow(x: Mutable[Scalar], b: Param):
    x = x + b


# ---- copies


def views(session, seed):
    """An array of random shape and dtype, and a view of it that numpy made."""
    rng = random.Random(seed)
    shape = [rng.randint(1, 6) for _ in range(rng.randint(0, 3))]
    dtype = rng.choice(["float64", "float32", "int64", "int32", "bool"])
    whole = session.zeros([2 * n + 1 for n in shape] or [1], dtype=dtype)
    values = np.arange(whole.size).reshape(whole.shape) % 7 - 3
    whole[...] = values
    if not shape:
        return whole, whole.reshape(())
    axes = tuple(slice(None, 2 * n, 2) if rng.random() < 0.5 else slice(n, 0, -1) for n in shape)
    view = whole[axes]
    order = list(range(view.ndim))
    rng.shuffle(order)
    return whole, view.transpose(order)


@pytest.mark.parametrize("seed", range(30))
def test_a_copy_gives_what_numpy_gives(session, seed):
    _, source = views(session, seed)
    rng = random.Random(seed + 1000)
    dtype = rng.choice(["float64", "float32", "int64", "int32", "bool"])
    target = session.zeros([3 * n for n in source.shape], dtype=dtype)
    part = (*(slice(1, None, 3) for _ in source.shape), ...)
    destination = target[part]
    eagle.Graph(session).add_node(eagle.copy(source, destination)).build().launch()
    expected = np.zeros_like(target)
    expected[part] = source.astype(dtype)
    np.testing.assert_array_equal(target, expected)


def test_a_large_copy_is_shared_by_the_team(session):
    m = session.asarray(np.arange(300_000.0).reshape(300, 1000))
    out = session.zeros((1000, 300))
    g = eagle.Graph(session).add_node(eagle.copy(m.T, out)).build().launch()
    np.testing.assert_array_equal(out, m.T)
    assert g.schedule == ("work_share",)


def test_conversions_are_those_of_kernels(session):
    x = session.asarray([np.nan, np.inf, -np.inf, 1e300, -1e300, 2.9, -2.9, 0.0, 2.0**63, -(2.0**63)])
    cases = {
        "int64": [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 2, -2, 0, 2**63 - 1, -(2**63)],
        "int32": [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2, -2, 0, 2**31 - 1, -(2**31)],
        "bool": [True, True, True, True, True, True, True, False, True, True],
    }
    for dtype, expected in cases.items():
        out = session.zeros(10, dtype=dtype)
        eagle.Graph(session).add_node(eagle.copy(x, out)).build().launch()
        assert out.tolist() == expected


def test_a_copy_has_edges_labels_and_a_picture(session):
    x, y, z = session.zeros(4), session.zeros(4), session.zeros(4)
    g = eagle.Graph(session).add(eagle.plan(twice).bind(x=x, y=y)).add_node(eagle.copy(y, z))
    g.add(eagle.plan(twice).bind(x=z, y=y))
    assert g.node_labels() == ["twice", "copy", "twice"]
    assert [tuple(edge) for edge in g.edges()] == [
        (0, 1, "y", "RAW"),
        (0, 2, "y", "WAW"),
        (1, 2, "dst", "RAW"),
        (1, 2, "src", "WAR"),
    ]
    assert "│ copy" in str(g.build())


def test_copies_are_refused_by_what_is_wrong(session):
    x = session.zeros(8)
    read_only = session.zeros(4)
    read_only.flags.writeable = False
    for make, error, words in [
        (lambda: eagle.copy(x[:4], x[2:6]), ValueError, "share bytes"),
        (lambda: eagle.copy(x, x), ValueError, "share bytes"),
        (lambda: eagle.copy(x[:4], session.zeros(5)), ValueError, "shape"),
        (lambda: eagle.copy(x[:4], read_only), ValueError, "read-only"),
        (lambda: eagle.copy(x[:4], np.broadcast_to(session.zeros(1), 4)), ValueError, "read-only"),
        (lambda: eagle.copy([1.0], x[:1]), TypeError, "src"),
        (lambda: eagle.copy(x[:1], None), TypeError, "dst"),
    ]:
        with pytest.raises(error, match=words) as caught:
            eagle.Graph(session).add_node(make())
        assert isinstance(caught.value, eagle.EagleError)


def test_a_copy_is_the_cure_that_a_copy_bound_plane_names(session):
    m, y = session.asarray(np.arange(8.0).reshape(4, 2)), session.zeros(4)
    with pytest.raises(eagle.CopyBoundPlane, match=r"eagle\.copy") as caught:
        eagle.plan(twice).bind(x=m[:, 1], y=y)
    assert "'x'" in str(caught.value)
    column = session.zeros(4)
    g = eagle.Graph(session).add_node(eagle.copy(m[:, 1], column)).add(eagle.plan(twice).bind(x=column, y=y))
    g.build().launch()
    assert y.tolist() == [2.0, 6.0, 10.0, 14.0]


def test_a_copy_in_a_branch_and_in_a_loop(session):
    live, x, y, z = session.asarray([3]), session.asarray([1.0, 2.0]), session.zeros(2), session.zeros(2)
    body = [eagle.copy(x, y), eagle.plan(grow).bind(x=x, b=1.0), opaque(lambda: live.__setitem__(0, live[0] - 1))]
    g = eagle.Graph(session).add_group([eagle.copy(x, y), eagle.copy(x, z)], names=["one", "two"])
    g.add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(live), 9)).build().launch()
    assert (y.tolist(), z.tolist(), x.tolist()) == ([3.0, 4.0], [1.0, 2.0], [4.0, 5.0])


# ---- scratch planes


def chain(session, g, x, out, scratches):
    """x -> 2x -> 4x -> ... -> out, by way of the scratch planes."""
    planes = [x, *scratches, out]
    for source, target in zip(planes, planes[1:]):
        g.add(eagle.plan(twice).bind(x=source, y=target))
    return g


def test_a_chain_runs_through_scratch(session):
    x, out = session.asarray(np.arange(5000.0)), session.zeros(5000)
    g = eagle.Graph(session)
    chain(session, g, x, out, [g.scratch(5000, name=name) for name in "abc"])
    assert [(e.src, e.dst, e.plane, e.kind) for e in g.edges()] == [(i, i + 1, "y", "RAW") for i in range(3)]
    g.build().launch(2)
    assert out.tolist() == (np.arange(5000.0) * 16).tolist()


def test_a_fused_chain_needs_no_scratch_memory(session):
    x, out = session.full(5000, 1.0), session.zeros(5000)
    g = eagle.Graph(session)
    chain(session, g, x, out, [g.scratch(5000, name=name) for name in "abc"])
    g.build().launch()
    if g.report.execution.fusion != "full":
        pytest.skip("EAGLED_FUSION says otherwise")
    assert [use.in_memory for use in g.report.scratch] == [False] * 3
    assert len(g.report.execution.groups) == len(g.report.execution.groups[0].functions) == 1
    assert [index for index, _ in g.report.execution.groups[0].functions[0]] == [0, 1, 2, 3]
    assert g.report.execution.bytes == 2 * 8 * 5000
    assert g.explain(1).execution.startswith("one function with 0 'twice', 2 'twice', 3 'twice'; 5,000 samples on ")
    assert g.explain(1).execution in str(g.explain(1))


def test_scratch_whose_lives_do_not_meet_shares_memory(session):
    x, out = session.zeros(100), session.zeros(100)
    g = eagle.Graph(session)
    planes = [x, *(g.scratch(100, name=name) for name in "abcd"), out]
    for src, dst in zip(planes, planes[1:]):
        g.add_node(eagle.copy(src, dst))
    g.build().launch()
    uses = g.report.scratch
    assert [use.name for use in uses] == list("abcd")
    assert all(use.in_memory and use.bytes == 800 for use in uses)
    offsets = [use.offset for use in uses]
    assert offsets[0] == offsets[2] != offsets[1] == offsets[3]


def test_scratch_of_branches_is_apart(session):
    x, left, right = session.full(64, 1.0), session.zeros(64), session.zeros(64)
    g = eagle.Graph(session)
    a, b = g.scratch(64), g.scratch(64)
    branches = [
        [eagle.copy(x, a), eagle.plan(twice).bind(x=a, y=left)],
        [eagle.copy(x, b), eagle.plan(add_up).bind(x=b, y=x, z=right)],
    ]
    g.add_group(branches).build().launch(3)
    assert (set(left.tolist()), set(right.tolist())) == ({2.0}, {2.0})
    assert len({use.offset for use in g.report.scratch}) == 2


def test_slices_and_vectors_of_scratch(session):
    v = session.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    out = session.zeros(2)
    g = eagle.Graph(session)
    w = g.scratch(3, width=2, name="w")
    assert (w.shape, w.dtype, w.ndim, w.size, len(w)) == ((2, 3), np.float64, 2, 6, 2)
    g.add(eagle.plan(swap).bind(v=v, w=w))
    g.add(eagle.plan(add_up).bind(x=w[0, 1:], y=w[1, :2], z=out))
    g.build().launch()
    assert out.tolist() == [5.0 + 1.0, 6.0 + 2.0]


def test_outputs_that_are_not_given_are_made_beside_scratch(session):
    x = session.full(4, 3.0)
    g = eagle.Graph(session)
    s = g.scratch(4)
    last = eagle.plan(twice).bind(x=s)
    g.add(eagle.plan(twice).bind(x=x, y=s)).add(last).build().launch()
    assert last.planes["y"].tolist() == [12.0] * 4


def test_scratch_is_copied_out_and_in(session):
    x, out = session.asarray(np.arange(6.0).reshape(2, 3)), session.zeros((3, 2))
    g = eagle.Graph(session)
    s = g.scratch((2, 3), name="s")
    g.add_node(eagle.copy(x, s)).add_node(eagle.copy(s.T, out)).build().launch()
    assert out.tolist() == x.T.tolist()


def test_a_guard_looks_at_scratch(session):
    flag, x = session.asarray([1]), session.zeros(2)
    g = eagle.Graph(session)
    cell = g.scratch(1, dtype=np.int64)
    g.add_node(eagle.copy(flag, cell))
    g.add_node(eagle.skippable(eagle.plan(grow).bind(x=x, b=1.0), eagle.SkipGuard.nonzero(cell)))
    g.build().launch()
    flag[0] = 0
    g.launch()
    assert x.tolist() == [1.0, 1.0]


def test_outside_of_its_graph_a_scratch_plane_is_refused_by_name(session):
    g, x = eagle.Graph(session), session.zeros(3)
    s = g.scratch(3, name="between")
    for use in (
        lambda: np.asarray(s),
        lambda: np.add(s, 1.0),
        lambda: list(s),
        lambda: float(s[0]),
        lambda: s.__setitem__(0, 1.0),
    ):
        with pytest.raises((ValueError, TypeError)):
            use()
    with pytest.raises(ValueError, match=r"'between'.*eagle\.copy") as caught:
        np.asarray(s)
    assert caught.value.reason == "SCRATCH_PLANE"
    with pytest.raises(ValueError, match="'between'.*another graph"):
        eagle.Graph(session).add(eagle.plan(twice).bind(x=x, y=s))
    with pytest.raises(ValueError, match="'between'"):
        eagle.plan(twice).bind(x=x, y=s).launch()
    with pytest.raises(ValueError, match="'between'.*callable"):
        g.add_node(opaque(lambda: None, reads={"s": s}))


def test_scratch_that_nobody_wrote_is_not_read(session):
    g, out = eagle.Graph(session), session.zeros(3)
    s = g.scratch(3, name="empty")
    g.add(eagle.plan(twice).bind(x=s, y=out), name="reader")
    with pytest.raises(ValueError, match="reader.*'empty'.*before any node wrote") as caught:
        g.build()
    assert caught.value.reason == "SCRATCH_PLANE"
    g = eagle.Graph(session)
    cell = g.scratch(1, dtype=np.int64)
    g.add_node(eagle.skippable(opaque(lambda: None), eagle.SkipGuard.nonzero(cell)))
    with pytest.raises(ValueError, match="before any node wrote"):
        g.build()


def written_in_part(g, x, s, cell):
    return g.add(eagle.plan(twice).bind(x=x[:4], y=s[:4]))


def written_by_a_node_that_is_skipped(g, x, s, cell):
    return g.add_node(eagle.skippable(eagle.plan(twice).bind(x=x, y=s), eagle.SkipGuard.nonzero(cell)))


def written_in_a_loop_that_runs_never(g, x, s, cell):
    return g.add_node(eagle.repeat_while([eagle.plan(twice).bind(x=x, y=s)], eagle.SkipGuard.nonzero(cell), 3))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (written_in_part, "wrote only a part"),
        (written_by_a_node_that_is_skipped, "only where a conditional runs"),
        (written_in_a_loop_that_runs_never, "only where a conditional runs"),
    ],
)
def test_scratch_that_is_not_surely_written_is_not_read(session, write, words):
    x, y, cell = session.full(8, 7.0), session.zeros(8), session.zeros(1, dtype=np.int64)
    g = eagle.Graph(session)
    s = g.scratch(8, name="s")
    write(g, x, s, cell).add(eagle.plan(twice).bind(x=s, y=y), name="reader")
    with pytest.raises(ValueError, match=f"node 1 'reader': reads 'x'.*'s'.*{words}") as caught:
        g.build()
    assert caught.value.reason == "SCRATCH_PLANE"
    # The cure: whatever else writes it, a node before wrote all of it.
    g = eagle.Graph(session)
    s = g.scratch(8, name="s")
    write(g.add_node(eagle.copy(x, s)), x, s, cell).add(eagle.plan(twice).bind(x=s, y=y)).build().launch()
    assert y.tolist() == ([28.0] * 4 + [14.0] * 4 if write is written_in_part else [14.0] * 8)


def test_scratch_is_written_column_by_column(session):
    x, out = session.asarray(np.arange(5.0)), session.zeros((5, 2))
    g = eagle.Graph(session)
    s = g.scratch((5, 2))
    for column in range(2):
        g.add_node(eagle.copy(x, s[:, column]))
    g.add_node(eagle.copy(s, out)).build().launch()
    assert out.tolist() == [[v, v] for v in range(5)]


def test_a_mask_in_scratch_is_written_first(session):
    x, y, clear = session.asarray([1.0, 2.0]), session.zeros(2), session.asarray([False, True])
    g = eagle.Graph(session)
    done = g.scratch(2, dtype=bool, name="mask")
    g.add(eagle.plan(twice_once).bind(x=x, y=y, done=done))
    with pytest.raises(ValueError, match="reads 'done'.*'mask'.*before any node wrote"):
        g.build()
    g = eagle.Graph(session)
    done = g.scratch(2, dtype=bool, name="mask")
    g.add_node(eagle.copy(clear, done)).add(eagle.plan(twice_once).bind(x=x, y=y, done=done)).build().launch()
    assert y.tolist() == [2.0, 0.0]


def test_scratch_is_checked_when_it_is_made():
    g = eagle.Graph()
    for make, error in [
        (lambda: g.scratch(3, dtype="float16"), TypeError),
        (lambda: g.scratch(-1), ValueError),
        (lambda: g.scratch("3"), TypeError),
        (lambda: g.scratch(2**61), ValueError),
        (lambda: g.scratch(3, name=4), TypeError),
        (lambda: g.scratch(3)[[0, 1]], TypeError),
    ]:
        with pytest.raises(error) as caught:
            make()
        assert isinstance(caught.value, eagle.EagleError)
    assert len({g.scratch(3).name for _ in range(3)}) == 3


def test_scratch_counts_in_the_daemons_budget(tmp_path):
    with running_daemon(tmp_path) as endpoint, eagle.connect(endpoint) as session:  # no planes of other tests that go
        g, x, out = eagle.Graph(session), session.zeros(3), session.zeros(3)

        def used() -> tuple[int, int]:
            info = session.info()
            return info.plane_bytes, next(one.plane_bytes for one in info.tenants if one.name == info.tenant)

        before = used()
        between = g.scratch(3)  # copies need it in memory; kernels would hand it on in registers
        g.add_node(eagle.copy(x, between)).add_node(eagle.copy(between, out)).build()
        # A page of it for the daemon and for whom it is; the description counts for the tenant as well.
        assert used()[0] >= before[0] + 4096
        assert used()[1] >= before[1] + 4096
        huge = eagle.Graph(session)
        s = huge.scratch(2**44)
        huge.add_node(eagle.copy(x, s[:3])).add_node(eagle.copy(s[:3], out))
        with pytest.raises(MemoryError):
            huge.build()


def test_a_graph_over_scratch_moves_to_the_session_of_its_arrays(daemon):
    g = eagle.Graph()
    s = g.scratch(4)
    x, out = daemon.full(4, 1.0), daemon.zeros(4)
    chain(daemon, g, x, out, [s]).build().launch()
    assert g.session is daemon
    assert out.tolist() == [4.0] * 4
