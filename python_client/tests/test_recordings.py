"""Rows of runs that go to files, on both hosts."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel


@kernel
def increment(x: Mutable[Scalar]):
    x = x + 1


@kernel
def square(x: Scalar) -> Scalar:
    y = x * x
    return y


@kernel
def at_three(x: Scalar, done: Terminated):
    done = x >= 3


@kernel
def count(x: Mutable[Scalar], limit: Param, done: Terminated):
    x = x + 1
    done = x >= limit


def bits(a, b):
    """Equal bits, NaN equal to NaN."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("every", [1, 3])
def test_records_go_to_a_file_in_bounded_memory(session, tmp_path, monkeypatch, every):
    from eagle import _recording

    monkeypatch.setattr(_recording, "_CHUNK_BYTES", 3 * 8 * 4)
    x, done = session.asarray([0.0, 1.0, 90.0]), session.zeros(3, bool)
    path = tmp_path / "x.npy"
    result = eagle.simulate(
        count, max_steps=10**9, x=x, limit=100.0, done=done, record="x", every=every, record_to=path
    )
    expected = np.minimum(np.array([0.0, 1.0, 90.0]) + np.arange(0, 101, every)[:, None], 100.0)
    assert bits(np.load(path), expected)
    assert bits(np.asarray(result.records["x"]), expected)
    assert result.report.records == len(expected)


@pytest.mark.parametrize("ends", ["progress", "interrupt", "until"])
def test_a_file_holds_its_rows_whatever_ends_the_run(session, tmp_path, monkeypatch, ends):
    from eagle import _recording

    monkeypatch.setattr(_recording, "_CHUNK_BYTES", 3 * 8 * 4)
    x, done = session.zeros(3), session.zeros(3, bool)
    path, written = tmp_path / "x.npy", []

    def end(*_):
        rows = np.load(path)  # while it goes on, too
        assert bits(rows, np.arange(len(rows))[:, None] * np.ones(3))
        written.append(len(rows))
        if len(rows) > 100 and ends == "interrupt":
            signal.raise_signal(signal.SIGINT)
        elif len(rows) > 100:
            raise LookupError("mine")

    how = {"progress": end} if ends == "progress" else {"until": end}
    options = {"record": "x", "record_to": path, "max_steps": 2**40, **how}
    with pytest.raises(KeyboardInterrupt if ends == "interrupt" else LookupError):
        eagle.simulate(count, x=x, limit=np.inf, done=done, **options)
    rows = np.load(path)
    assert len(rows) >= written[-1] > 100
    assert bits(rows, np.arange(len(rows))[:, None] * np.ones(3))


def test_a_deadline_while_rows_are_written_keeps_them_all(session, tmp_path, monkeypatch):
    from eagle import _recording

    monkeypatch.setattr(_recording, "_CHUNK_BYTES", 3 * 8 * 4)
    x, done = session.zeros(3), session.zeros(3, bool)
    path = tmp_path / "x.npy"
    eagle.simulate(count, max_steps=0, x=x, limit=np.inf, done=done)
    result = eagle.simulate(
        count, max_steps=2**40, x=x, limit=np.inf, done=done, record="x", record_to=path, timeout=0.1
    )
    assert (result.status, result.report.records) == ("deadline", result.steps + 1)
    assert bits(np.load(path), np.arange(result.steps + 1)[:, None] * np.ones(3))


def test_a_file_that_an_earlier_result_has_open_is_replaced_and_not_written_over(session, tmp_path):
    path = tmp_path / "x.npy"
    link = tmp_path / "link.npy"
    link.symlink_to(path)

    def run(limit, to):
        x, done = session.zeros(3), session.zeros(3, bool)
        return eagle.simulate(count, max_steps=99, x=x, limit=limit, done=done, record="x", record_to=to)

    first = run(9.0, path)
    before = np.array(first.records["x"])
    path.chmod(0o640)
    second = run(2.0, link)
    assert bits(first.records["x"], before)
    assert second.records["x"][:, 0].tolist() == [0.0, 1.0, 2.0]
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.npy", "x.npy"]


def test_a_run_that_is_refused_leaves_the_file_as_it_is(session, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(b"of before")
    x = session.zeros(3)
    other = session.zeros(4, bool)
    with pytest.raises(eagle.EagleError):
        eagle.simulate(count, max_steps=9, x=x, limit=9.0, done=other, record="x", record_to=path)
    assert path.read_bytes() == b"of before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="cannot write '/dev/null'"):
        eagle.simulate(
            count, max_steps=9, x=x, limit=9.0, done=session.zeros(3, bool), record="x", record_to="/dev/null"
        )


def test_several_files_are_named_after_the_planes(session, tmp_path):
    x, done = session.zeros(2), session.zeros(2, bool)
    to = tmp_path / "{name}.npy"
    eagle.simulate([increment, square, at_three], max_steps=9, x=x, done=done, record=["x", "y"], record_to=to)
    assert np.load(tmp_path / "x.npy")[:, 0].tolist() == [0, 1, 2, 3]
    assert np.load(tmp_path / "y.npy")[:, 0].tolist() == [0, 1, 4, 9]
    with pytest.raises(ValueError, match="2 planes do not go into one file"):
        eagle.simulate(count, max_steps=9, x=x, limit=4.0, done=done, record=["x", "done"], record_to=tmp_path / "a")
