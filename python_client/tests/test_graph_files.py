"""Graphs as files: saved, loaded over other arrays, in other sessions; and files that are not to be trusted."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import eagle
from eagle import Index, Mutable, Param, Scalar, Table, Terminated, Vector, kernel
from eagle.graph import group, opaque


@kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y


@kernel
def move(y: Mutable[Scalar], v: Vector[3], k: Param[int], done: Terminated):
    y = y + k * v[0] + v[2]
    done = y > 100.0


@kernel
def look(i: Index, t: Table[Scalar]) -> Scalar:
    z = t.at(i)
    return z


def saved(graph):
    """Through bytes, as another program would have it."""
    return bytes(eagle.GraphFile.of(graph))


def test_a_loaded_graph_computes_the_same_over_other_arrays(session, tmp_path):
    x, y = session.full(5, 1.0), session.zeros(5)
    g = eagle.Graph(session, name="line").add(eagle.plan(affine).bind(x=x, a=2.0, b=1.0, y=y), name="map")
    g.save(tmp_path / "line.eagle")

    mine, result = session.asarray(np.arange(5.0)), session.zeros(5)
    loaded = eagle.Graph.load(tmp_path / "line.eagle", {"x": mine, "map.y": result}).build().launch(2)
    assert result.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert loaded.planes["y"] is result
    assert loaded.planes["x"] is mine
    assert loaded.node_labels() == ["map"]
    assert y.tolist() == [0.0] * 5


def test_planes_that_are_not_given_are_made_in_the_session(session):
    data = saved(eagle.Graph(session).add(eagle.plan(affine).bind(x=session.full(3, 4.0), a=2.0, b=1.0)))
    loaded = eagle.load_graph(session, data).build()
    loaded.planes["x"][...] = [1.0, 2.0, 3.0]
    loaded.launch()
    assert loaded.planes["y"].tolist() == [3.0, 5.0, 7.0]
    assert session.owns(loaded.planes["y"])


def test_arrays_that_share_bytes_are_one_plane_and_keep_their_edges(session):
    whole = session.zeros(8)
    g = eagle.Graph(session)
    g.add(eagle.plan(affine).bind(x=session.full(4, 3.0), a=1.0, b=0.0, y=whole[:4]), name="first")
    g.add(eagle.plan(affine).bind(x=whole[2:6], a=10.0, b=0.0, y=session.zeros(4)), name="second")
    file = eagle.GraphFile.read(saved(g))
    assert sorted(file.planes) == ["first.x", "first.y", "second.y"]
    shared = file.planes["first.y"]
    assert shared.nbytes == 48
    assert "second.x" in shared.names

    values = session.zeros(6)
    loaded = eagle.Graph.load(file, {"second.x": values}, session=session)
    assert [tuple(edge) for edge in loaded.edges()] == [tuple(edge) for edge in g.edges()]
    loaded.planes["first.x"][...] = 3.0
    loaded.build().launch()
    assert loaded.planes["second.y"].tolist() == [30.0, 30.0, 0.0, 0.0]


def test_every_kind_of_node_comes_back(session):
    n = 6
    state, v, done = session.zeros(n), session.full((3, n), 0.5), session.zeros(n, dtype=bool)
    flag, trips, total = session.full(1, 2), session.zeros(1, dtype=np.int64), session.zeros(1)
    rows, t = session.asarray([5, 0, 1, 9, 2, 3]), session.asarray(np.arange(4.0))
    told = []
    g = eagle.Graph(session, name="all")
    step = eagle.plan(move).bind(y=state, v=v, k=1, done=done)
    scratch = g.scratch(n, name="between")
    g.add_node(eagle.repeat_while(step, eagle.SkipGuard.nonzero(flag), 3, iteration_index=trips), name="loop")
    g.add_node(eagle.skippable([step], eagle.SkipGuard(trips, baseline=flag).negated()), name="maybe")
    g.add_group(
        [
            [eagle.plan(look).bind(i=rows, t=t, z=scratch)],
            [group([[eagle.reduce(state, total)], [eagle.copy(v[1], session.zeros(n))]])],
        ]
    )
    g.add(eagle.plan(affine).bind(x=scratch, a=2.0, b=0.5, y=session.zeros(n)), name="end")
    g.add_node(opaque(lambda: told.append("first"), reads={"x": state}), name="tell")
    data = saved(g)

    again = []
    arrays = {"maybe.guard": trips, "loop.guard": flag}  # names of conditionals are those of their guards
    file = eagle.GraphFile.read(data)
    loaded = eagle.Graph.load(
        data,
        {next(iter(file.planes)): flag} if "guard" in file.planes else {},
        {"tell": lambda: again.append(1)},
        session=session,
    )
    assert arrays.keys() <= {name for plane in file.planes.values() for name in plane.names}
    assert str(loaded) == str(g)
    assert loaded.node_labels() == g.node_labels()
    assert [tuple(edge) for edge in loaded.edges()] == [tuple(edge) for edge in g.edges()]
    loaded.build().launch(2)
    assert again == [1, 1]
    assert told == []
    assert saved(loaded) == data


def test_params_are_what_they_were_updated_to(session):
    bound = eagle.plan(affine).bind(x=session.full(2, 1.0), a=2.0, b=1.0)
    g = eagle.Graph(session).add(bound).build()
    before = eagle.GraphFile.of(g).hash
    g.update({"a": 5.0}).update({("affine", "a"): 6.0}).update({"a": 7.0})
    file = eagle.GraphFile.of(g)
    assert file.hash != before
    loaded = eagle.Graph.load(file, {"x": session.full(2, 1.0)}).build().launch()
    assert loaded.planes["y"].tolist() == [8.0, 8.0]


def test_files_do_not_depend_on_where_memory_lies(session):
    memory = session.zeros(8)

    def made(x, y):
        return saved(eagle.Graph(session).add(eagle.plan(affine).bind(x=x, a=1.0, b=0.0, y=y)))

    assert made(memory[:4], memory[4:]) == made(memory[4:], memory[:4])


def test_a_hash_says_what_is_computed_and_not_where(session):
    def made(name, size, a):
        filler = session.zeros(size)
        g = eagle.Graph(session, name=name).add(eagle.plan(affine).bind(x=session.zeros(4), a=a, b=0.0))
        assert filler is not None
        return eagle.GraphFile.of(g).hash

    assert made("one", 7, 2.0) == made("two", 70_000, 2.0)
    assert made("one", 7, 2.0) != made("one", 7, 3.0)


def test_files_of_both_hosts_are_the_same(local, daemon):
    def made(session):
        return saved(eagle.Graph(session).add(eagle.plan(affine).bind(x=session.zeros(4), a=1.0, b=0.0)))

    assert made(local) == made(daemon)


def test_a_loaded_graph_changes_like_any_other(session):
    data = saved(eagle.Graph(session).add(eagle.plan(affine).bind(x=session.full(2, 1.0), a=2.0, b=1.0)))
    loaded = eagle.Graph.load(data, session=session).build()
    other = session.asarray([5.0, 6.0])
    loaded.rebind(x=other).update({"b": 0.0}).launch()
    assert loaded.planes["y"].tolist() == [10.0, 12.0]


def test_what_is_missing_or_extra_is_named(session):
    g = eagle.Graph(session).add(eagle.plan(affine).bind(x=session.zeros(4), a=1.0, b=0.0))
    g.add_node(opaque(lambda: None, reads={"x": session.zeros(2)}), name="tell")
    g.add_node(opaque(lambda: None, writes={"w": session.zeros(2)}), name="tell")
    data = saved(g)
    calls = {"tell.0": lambda: None, "tell.1": lambda: None}
    with pytest.raises(eagle.EagleError, match=r"the graph calls 'tell\.0', 'tell\.1', and a file holds no code"):
        eagle.Graph.load(data, session=session)
    with pytest.raises(ValueError, match=r"no callable 'tall'; it has 'tell\.0', 'tell\.1'"):
        eagle.Graph.load(data, calls={"tall": lambda: None}, session=session)
    with pytest.raises(ValueError, match="no plane 'xx'; it has .*'y'"):
        eagle.Graph.load(data, {"xx": session.zeros(4)}, calls, session=session)
    with pytest.raises(
        ValueError, match=r"plane 'affine\.x': expected an array like float64 \(4,\), found float64 \(5,\)"
    ):
        eagle.Graph.load(data, {"affine.x": session.zeros(5)}, calls, session=session)
    with pytest.raises(TypeError, match="plane 'y': expected an array like float64 .*found float32"):
        eagle.Graph.load(data, {"y": session.zeros(4, dtype=np.float32)}, calls, session=session)
    with pytest.raises(TypeError, match="plane 'y' is given twice"):
        eagle.Graph.load(data, {"y": session.zeros(4), "affine.y": session.zeros(4)}, calls, session=session)
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        eagle.Graph.load(data, {"y": read_only}, calls, session=session)


def refused(data, match, error=ValueError):
    with pytest.raises(error, match=match) as caught:
        eagle.GraphFile.read(data)
    assert isinstance(caught.value, eagle.EagleError)


def with_content(data, content):
    """A file of this content whose sizes and SHA-256 are right."""
    return data[:16] + len(content).to_bytes(8, "little") + hashlib.sha256(content).digest() + data[56:88] + content


def test_files_that_are_not_what_they_say_are_refused_by_name(local, tmp_path):
    data = saved(eagle.Graph(local).add(eagle.plan(affine).bind(x=local.zeros(4), a=1.0, b=0.0)))
    refused(b"", "no saved graph: expected it to begin with EAGLEGPH")
    refused(b"GIF89a" + data[6:], "no saved graph.*found 'GIF89aPH'")
    refused(data[:50], "was cut short: .*head of 88 bytes, and this has 50")
    refused(
        data[:-1], rf"was cut short: its head says {len(data) - 88} bytes of content, and there are {len(data) - 89}"
    )
    refused(data + b"x", "something was appended to it")
    refused(
        data[:8] + b"\2\0\0\0" + data[12:], r"is of format 2, and this eagle \(.*\) reads format 1; install a newer"
    )
    refused(data[:12] + b"\1" + data[13:], "bytes 12 to 15 of its head are not 0")
    for place in (24, 90, len(data) - 1):
        refused(
            data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], "has changed since it was written: .*SHA-256"
        )
    refused(data[:60] + b"\0\0\0" + data[63:], "its head says .*put together from two files")
    refused(with_content(data, b"\xff\xff\xff"), "its content is no SavedGraph")
    refused(with_content(data, b""), "empty graph", eagle.GraphState)

    large = tmp_path / "large.eagle"
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    refused(large, r"large\.eagle' has 67108865 bytes, over the limit of 67108864 \(graph_file_bytes\)")
    refused(tmp_path / "none.eagle", r"none\.eagle' cannot be opened: No such file")
    refused(tmp_path, "is no regular file")
    with pytest.raises(TypeError, match="load: expected a path, found int"):
        eagle.GraphFile.read(3)


def test_a_file_is_replaced_whole_or_not_at_all(local, tmp_path):
    g = eagle.Graph(local).add(eagle.plan(affine).bind(x=local.zeros(4), a=1.0, b=0.0))
    path = tmp_path / "g.eagle"
    path.write_bytes(b"what was there")
    g.save(path)
    assert path.read_bytes() == saved(g)
    assert [p.name for p in tmp_path.iterdir()] == ["g.eagle"]
    with pytest.raises(RuntimeError, match=r"save: '.*g\.eagle': cannot be made: No such file"):
        g.save(tmp_path / "missing" / "g.eagle")
    with pytest.raises(eagle.GraphState, match="save: this graph is empty"):
        eagle.Graph(local).save(path)
    assert path.read_bytes() == saved(g)
