"""Sessions and their arrays, on both hosts."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import eagle
from eagle import Mutable, Scalar, Terminated, kernel


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("shape", [7, (7,), (3, 5), (2, 3, 4), (), 0, (3, 0)])
def test_arrays_are_real_numpy_arrays_of_the_dtype_and_shape(session, dtype, shape):
    array = session.zeros(shape, dtype=dtype)
    twin = np.zeros(shape, dtype=dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (twin.shape, twin.dtype)
    assert array.strides == twin.strides or not array.size
    assert array.dtype.char == twin.dtype.char
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert not array.any()


@pytest.mark.parametrize("dtype", ["float16", "uint8", "complex128", "int16", "<U3", object, ">f8"])
def test_other_dtypes_are_refused_by_name(session, dtype):
    with pytest.raises(TypeError, match="float64, float32, int64, int32 or bool") as caught:
        session.zeros(3, dtype=dtype)
    assert caught.value.reason == "WRONG_DTYPE"
    with pytest.raises(TypeError) as caught:
        session.asarray(np.zeros(3, dtype=dtype))
    assert str(np.dtype(dtype).name) in str(caught.value)


@pytest.mark.parametrize("shape", [-1, (3, -1), 2**62, (2**40, 2**40)])
def test_shapes_that_cannot_be_are_refused(session, shape):
    with pytest.raises(eagle.EagleError):
        session.zeros(shape)


def test_shapes_of_other_things_are_type_errors(session):
    for shape in ("3", 3.5, (2, "x"), None):
        with pytest.raises(TypeError, match="shape"):
            session.zeros(shape)


def test_full_and_empty_and_asarray(session):
    assert session.full(3, 1.5).tolist() == [1.5, 1.5, 1.5]
    assert session.full((2, 2), 7).dtype == np.int64
    assert session.full(2, True).dtype == np.bool_
    assert session.full(2, 1, dtype="float32").dtype == np.float32
    assert session.empty((4, 2)).shape == (4, 2)
    assert session.asarray([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    turned = np.arange(6.0).reshape(2, 3).T
    copied = session.asarray(turned)
    assert copied.tolist() == turned.tolist()
    assert copied.flags.c_contiguous


def test_asarray_copies_what_lies_elsewhere_and_keeps_what_lies_here(session):
    private = np.arange(5.0)
    shared = session.share(private)
    assert not np.shares_memory(shared, private)
    assert session.asarray(shared) is shared
    view = shared[1:3]
    assert session.asarray(view) is view
    assert session.owns(view)
    assert not session.owns(private)


def test_masked_arrays_do_not_lose_their_mask_unsaid(session):
    with pytest.raises(TypeError, match="filled"):
        session.asarray(np.ma.array([1.0, 2.0], mask=[True, False]))


def test_views_of_an_array_keep_its_memory_alive(session):
    tail = session.asarray(np.arange(1000.0))[990:]
    for _ in range(50):
        session.zeros(1000)[...] = 7.0  # would reuse freed memory
    assert tail.tolist() == list(range(990, 1000))


def test_arrays_stay_readable_after_close_and_launches_over_them_are_refused(session):
    k = eagle.kernel(source="def f(x: Mutable[Scalar]):\n    x = x + 1")
    x = session.asarray([1.0, 2.0])
    bound = eagle.plan(k).bind(x=x)
    session.close()
    session.close()
    assert session.closed
    assert x.tolist() == [1.0, 2.0]
    for use in (bound.launch, lambda: k(x), lambda: session.zeros(3), session.info):
        with pytest.raises(eagle.SessionClosed) as caught:
            use()
        assert isinstance(caught.value, RuntimeError)
    assert x.tolist() == [1.0, 2.0]


def test_info_names_the_process_that_computes(local, daemon):
    here, there = local.info(), daemon.info()
    assert (here.host.pid, here.endpoint) == (os.getpid(), "local")
    assert there.host.pid != os.getpid()
    assert there.endpoint.startswith("unix:")
    assert (local.transport, daemon.transport) == ("in process", "memfd + ring")
    assert here.version == there.version == eagle.__version__
    assert here.threads >= 1


def test_inside_with_it_is_the_current_session_and_closed_at_the_end(endpoint):
    with eagle.connect(endpoint) as outer:
        assert outer.owns(eagle.zeros(3))
        with eagle.local() as inner:
            assert inner.owns(eagle.full(3, 1.0))
        assert inner.closed
        assert not outer.closed
        assert outer.owns(eagle.asarray([1.0]))
    assert outer.closed


def test_without_a_current_session_arrays_are_made_in_this_process():
    assert eagle.zeros(3).tolist() == [0.0, 0.0, 0.0]
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
    bound = eagle.plan(k).bind(x=np.ones(3))
    assert bound.session.info().host.pid == os.getpid()
    assert bound.launch().planes["out"].tolist() == [2.0, 2.0, 2.0]


def test_eagle_endpoint_decides_where_nothing_else_does(endpoint, monkeypatch):
    monkeypatch.setenv("EAGLE_ENDPOINT", endpoint)
    x = eagle.asarray([1.0, 2.0])
    k = eagle.kernel(source="def f(x: Mutable[Scalar], done: Terminated):\n    x = x + 1\n    done = x > 3")
    result = eagle.simulate(k, max_steps=9, x=x, done=eagle.zeros(2, dtype=bool))
    assert result.report.host.pid != os.getpid()


def test_planes_decide_where_a_kernel_runs_whatever_the_current_session_is(local, daemon):
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
    x = daemon.asarray([1.0, 2.0])
    with eagle.local():
        got = k(x)
    assert daemon.owns(got)
    assert got.tolist() == [2.0, 3.0]


def test_arrays_of_two_sessions_are_refused_both_named(local, daemon):
    k = eagle.kernel(source="def f(x: Scalar, y: Mutable[Scalar]):\n    y = x")
    for first, second in ((local, daemon), (daemon, local), (local, eagle.local())):
        with pytest.raises(ValueError, match="'y'") as caught:
            eagle.plan(k).bind(x=first.zeros(3), y=second.zeros(3))
        assert caught.value.reason == "MIXED_SESSIONS"


def test_a_private_array_in_a_kernel_of_the_daemon_is_refused_with_the_ways_out(daemon):
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
    with daemon, pytest.raises(eagle.PrivateArray, match="'x'") as caught:
        k(np.ones(3))
    assert isinstance(caught.value, ValueError)
    assert "asarray" in str(caught.value)


def test_a_session_works_in_every_thread(session):
    k = eagle.kernel(source="def f(x: Scalar, a: Param) -> Scalar:\n    return x * a")
    x, results = session.asarray(np.arange(100.0)), {}

    def work(number):
        results[number] = k(x, float(number), session=session).tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: (np.arange(100.0) * n).tolist() for n in range(8)}


@pytest.mark.parametrize(
    ("endpoint_text", "error", "words"),
    [
        ("unix:/nowhere/at/all.sock", ConnectionError, "/nowhere/at/all.sock"),
        ("unix:/" + "x" * 120, ValueError, "107"),
        ("ftp:somewhere", ValueError, "ftp"),
        (3, TypeError, "endpoint"),
    ],
)
def test_endpoints_that_do_not_answer_or_cannot_be_are_refused(endpoint_text, error, words):
    with pytest.raises(error, match=words) as caught:
        eagle.connect(endpoint_text, timeout=2.0)
    assert isinstance(caught.value, eagle.EagleError)


def test_options_of_sessions_are_checked():
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="threads"):
            eagle.local(threads=wrong)
    with pytest.raises(TypeError, match="threads"):
        eagle.local(threads="two")
    with pytest.raises(ValueError, match="timeout"):
        eagle.connect(timeout=0)
    with pytest.raises(TypeError, match="timeout"):
        eagle.connect(timeout="soon")
    with pytest.raises(ValueError, match="device"):
        eagle.zeros(3, device="gpu:0")
    assert eagle.local(threads=1).info().threads == 1


def test_connect_without_an_endpoint_starts_a_private_daemon_that_the_process_shares():
    with eagle.connect() as one, eagle.connect() as other:
        assert one.info().host.pid == other.info().host.pid != os.getpid()
        x = one.asarray([1.0, 2.0])
        k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
        assert k(x).tolist() == [2.0, 3.0]


@kernel
def grow(x: Mutable[Scalar], done: Terminated):
    x = x + 1.0
    done = x > 3.0


def test_what_is_no_session_is_refused_wherever_one_is_taken(session):
    planes = {"x": session.zeros(2), "done": session.zeros(2, dtype=bool)}
    plan = eagle.plan(grow)
    for make in (
        lambda: eagle.Graph(3),
        lambda: eagle.GraphPipeline(3),
        lambda: plan.bind(session=3, **planes),
        lambda: grow(session=3, **planes),
        lambda: eagle.simulate(grow, max_steps=9, session=3, **planes),
        lambda: eagle.simulation(grow, max_steps=9, session=3, **planes),
        lambda: eagle.diff.simulate(grow, max_steps=9, session=3, **planes),
        lambda: eagle.until_done(plan, max_steps=9, session=3, **planes),
        lambda: eagle.submit(grow, max_steps=9, session=3, **planes),
    ):
        with pytest.raises(TypeError, match=r"session: expected an eagle\.Session, found int"):
            make()
