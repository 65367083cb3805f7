"""`eaglectl verify GRAPH`: a graph of a daemon is computed on its CPU and on a GPU, from the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eagle
import numpy as np
import pytest
from eagle.graph import opaque
from harness import Beside, Daemon, eaglectl
from models import add_into, affine

GPU = "cuda:0"

pytestmark = pytest.mark.usefixtures("fake_gpus")


def verify(daemon: Daemon, *words: str) -> tuple[int, Any]:
    """(exit status, what --json said, or the error)."""
    done = eaglectl("--endpoint", daemon.endpoint, "--json", "verify", *words, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def two_nodes(session: eagle.Session, **where: str) -> tuple[eagle.Graph, list[Any]]:
    """x goes through two nodes, in place, and is added to z at the end."""
    x, y = session.asarray(np.linspace(0.0, 1.0, 50), **where), session.zeros(50, **where)
    z = session.full(50, 7.0, **where)
    g = eagle.Graph(name="drift")
    g.add(eagle.plan(affine).bind(x=x, y=y, a=1.1, b=0.3), name="scale")
    g.add(eagle.plan(add_into).bind(x=x, y=y, z=z), name="sum")
    return g.build(), [x, y, z]


@pytest.mark.parametrize("where", [{}, {"device": GPU}], ids=["host", "gpu"])
def test_a_graph_that_computes_the_same_is_said_to_and_its_arrays_stay(
    gpu_daemon: Callable[..., Daemon], where: dict[str, str]
) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        g, arrays = two_nodes(session, **where)
        before = [np.asarray(array).tobytes() for array in arrays]
        status, said = verify(daemon, "drift", "--launches", "3")
        assert (status, said["passed"], said["difference"]) == (0, True, None)
        assert (said["device"], said["backend"]) == (GPU, g.backend)
        assert (said["nodes"], said["schedule"], said["launches"]) == (2, ["cuda_graph", "cuda_graph"], 3)
        assert said["planes"] >= 1
        assert [np.asarray(array).tobytes() for array in arrays] == before
        g.launch()  # and it is as launchable as before
        text = eaglectl("--endpoint", daemon.endpoint, "verify", "drift").stdout
        assert "give the same bits" in text
        assert "fake GPU 0" in text


@pytest.mark.parametrize("where", [{}, {"device": GPU}], ids=["host", "gpu"])
def test_a_wrong_bit_is_found_by_array_index_and_ulps(gpu_daemon: Callable[..., Daemon], where: dict[str, str]) -> None:
    daemon = gpu_daemon(pretend="devices=1,flip_bit=1")  # the first launch of a kernel: of `scale`, when it is verified
    with eagle.connect(daemon.endpoint) as session:
        _, arrays = two_nodes(session, **where)
        before = [np.asarray(array).tobytes() for array in arrays]
        status, said = verify(daemon, "drift")
        found = said["difference"]
        assert (status, said["passed"], found["what"]) == (3, False, "element")
        assert (found["node"], found["argument"], found["ulps"]) == ("scale", "y", 1)
        (index,) = found["index"]
        expected = 1.1 * np.linspace(0.0, 1.0, 50)[index] + 0.3
        assert float(found["cpu"]) == expected
        assert float(found["gpu"]) in (np.nextafter(expected, np.inf), np.nextafter(expected, -np.inf))
        assert "1 ULP apart" in found["text"]
        assert [np.asarray(array).tobytes() for array in arrays] == before
        assert verify(daemon, "drift")[0] == 0  # no launch after the first is wrong


def test_numbers_that_params_were_given_since_are_used(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend="devices=1,flip_bit=1")
    with eagle.connect(daemon.endpoint) as session:
        g, _ = two_nodes(session)
        g.update({"a": 0.0, "b": 8.0})
        assert verify(daemon, "drift")[1]["difference"]["cpu"] == "8"


def test_loops_scratch_and_reductions_are_compared(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x, total = session.full(20, 1.0), session.zeros(1)
        left = session.asarray(np.array([1]))
        g = eagle.Graph(name="loop")
        between = g.scratch(20)
        body = [
            eagle.plan(affine).bind(x=x, y=between, a=0.5, b=0.1),
            eagle.plan(affine).bind(x=between, y=x, a=1.5, b=0.0),
        ]
        g.add_node(eagle.repeat_while(body, eagle.SkipGuard.nonzero(left), 5))
        g.add_node(eagle.graph.reduce(x, total))
        g.build()
        status, said = verify(daemon, "loop")
        assert (status, said["difference"]) == (0, None)
        assert total[0] == 0.0


# ---- bad input


def test_a_daemon_without_a_gpu_says_so(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    daemon = Daemon(short_path)
    try:
        with eagle.connect(daemon.endpoint) as session:
            kept = two_nodes(session)
            status, said = verify(daemon, "drift")
            assert (status, len(kept)) == (1, 2)
            assert "device 'cuda': no CUDA driver" in said
    finally:
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("pretend", "options", "words", "expected"),
    [
        ("devices=0", (), (), "device 'cuda'"),
        ("devices=1", ("--devices", "none"), (), "--devices none"),
        ("devices=1", (), ("--device", "cuda:4"), "device 'cuda:4': there is none; .*fake GPU 0"),
        ("devices=1", (), ("--device", "gpu"), "expected 'cpu', 'cuda:0'"),
        ("devices=1", ("--device-budget", "2097152"), (), "copies of planes of .* bytes do not fit on cuda:0"),
        ("devices=1,fail_alloc=1", (), (), "bytes free of .*, and 3204096 were asked for"),
        ("devices=1,fail_launch=1", (), (), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("devices=1,capability=70", (), (), "too old"),
    ],
)
def test_what_a_gpu_cannot_do_is_said_by_name(
    gpu_daemon: Callable[..., Daemon],
    pretend: str,
    options: tuple[str, ...],
    words: tuple[str, ...],
    expected: str,
) -> None:
    daemon = gpu_daemon(*options, pretend=pretend)
    with eagle.connect(daemon.endpoint) as session:
        g, arrays = two_nodes(session)
        big = session.zeros(400_000)
        kept = eagle.Graph(name="big").add(eagle.plan(affine).bind(x=big, y=big, a=1.0, b=1.0)).build()
        status, said = verify(daemon, "big", *words)
        assert status == 1
        assert re.search(expected, said), said
        assert arrays[2].tolist() == [7.0] * 50
        g.launch()  # the CPU goes on
        kept.launch()


def test_a_graph_with_callables_is_refused_by_the_callables_name(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(4)
        g = eagle.Graph(name="mine")
        g.add_node(opaque(lambda x: None, writes={"x": x}), name="my callable").build()
        status, said = verify(daemon, "mine")
        assert status == 1
        assert "'my callable' is a callable of its program" in said


def test_only_graphs_that_there_are_are_verified(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        g, _ = two_nodes(session)
        assert g.backend == "cpu"
        assert "no graph 'drifr'" in verify(daemon, "drifr")[1]
        assert verify(daemon, "drift", "--launches", "0")[0] == 2
        assert verify(daemon, "--device", "cuda:0")[0] == 2


def test_a_launch_meanwhile_is_seen_whole_or_not_at_all(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon()
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(1000)
        g = eagle.Graph(name="counts").add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()
        checking = Beside(lambda: [verify(daemon, "counts")[1] for _ in range(3)])
        while not checking.ended():
            g.launch()
        for said in checking.result():
            assert said["difference"] is None, said
        assert x.tolist() == [x[0]] * 1000
