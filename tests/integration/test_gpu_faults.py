"""Faults of a GPU that its driver never forgets, injected into the fake driver, between real processes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eagle
import numpy as np
import pytest
from harness import Beside, Daemon, children, eaglectl, wait_until
from models import affine

GPU = "cuda:0"
FAILS = "devices=2,fail_launch=3"
FAULT = "CUDA_ERROR_ILLEGAL_ADDRESS"

pytestmark = pytest.mark.usefixtures("fake_gpus")


def drift(session: eagle.Session, name: str = "drift", **where: str) -> tuple[eagle.Graph, Any]:
    x = session.zeros(4, name="place", **where)
    return eagle.Graph(name=name).add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build(), x


def another_worker(daemon: Daemon) -> None:
    wait_until(lambda: children(daemon.process.pid) not in ([], [daemon.pid]), "another worker\n" + daemon.log())
    wait_until(lambda: daemon.info()["worker_restarts"] > 0, "the next worker to serve")


def health(daemon: Daemon, service: str) -> str:
    done = eaglectl("--endpoint", daemon.endpoint, "health", service, check=False)
    return done.stdout + done.stderr


def test_a_fault_costs_the_gpus_arrays_and_nothing_else(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend=FAILS)
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        g, x = drift(session, device=GPU)
        on_host, kept = drift(session, "on the host")
        elsewhere = other.full(3, 5.0)
        g.launch(2)
        with pytest.raises(eagle.EagleError, match=FAULT) as fault:
            g.launch()
        assert "cuda:0 (fake GPU 0" in str(fault.value)
        assert "is lost to this process" in str(fault.value)
        another_worker(daemon)
        # The host's arrays and graphs are there, whoever's they are.
        on_host.launch(2)
        assert kept.tolist() == [2.0] * 4
        assert elsewhere.tolist() == [5.0] * 3
        with pytest.raises(eagle.EagleError, match="lost with its worker: make the array again"):
            x.numpy()
        with pytest.raises(eagle.EagleError, match=r"place|lost"):
            g.launch()
        # And the GPU serves again.
        h, y = drift(session, "again", device=GPU)
        h.launch(2)
        assert y.numpy().tolist() == [2.0] * 4


def test_what_was_lost_is_told_by_session_graph_and_plane(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend=FAILS)
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        g, x = drift(session, device=GPU)
        lost_too = other.zeros(1 << 18, name="salt", device=GPU)
        assert [gpu["lost"] for gpu in daemon.info()["gpus"]] == [False]
        g.launch(2)
        with pytest.raises(eagle.EagleError, match=FAULT):
            g.launch()
        another_worker(daemon)
        (fault,) = daemon.info()["gpu_faults"]
        assert (fault["device"], fault["planes"], fault["graphs"], fault["graph"]) == (GPU, 2, 1, "drift")
        assert FAULT in fault["why"]
        assert "fake GPU 0" in fault["gpu"]
        assert fault["plane_bytes"] == (2 << 20) + lost_too.nbytes  # small arrays lie together
        assert x.nbytes < 100
        rows = sorted((row["plane_labels"], row["graph_names"], row["graphs"]) for row in fault["sessions"])
        assert rows == [(["salt"], [], 0), (["small arrays"], ["drift"], 1)]
        text = eaglectl("--endpoint", daemon.endpoint, "info").stdout
        assert "worker 1 lost cuda:0 (fake GPU 0" in text
        assert "'drift' computed there" in text
        for words in (
            r"lost with cuda:0: planes=2 .*graphs=1 sessions=2",
            r"lost of client .*: planes=1 \(.salt.\) graphs=0",
        ):
            assert re.search(words, daemon.log()), daemon.log()


def test_the_worker_stays_for_as_long_as_something_lies_on_its_other_gpus(
    gpu_daemon: Callable[..., Daemon],
) -> None:
    daemon = gpu_daemon(pretend=FAILS)
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        g, _ = drift(session, device=GPU)
        h, safe = drift(other, "safe", device="cuda:1")
        g.launch(2)
        with pytest.raises(eagle.EagleError, match=FAULT):
            g.launch()
        wait_until(lambda: "replaced once nothing lies on its other GPUs" in daemon.log(), "the report")
        assert [gpu["lost"] for gpu in daemon.info()["gpus"]] == [True, False]
        with pytest.raises(eagle.EagleError, match="is lost to this process"):
            session.zeros(3, device=GPU)
        h.launch(5)
        assert safe.numpy().tolist() == [5.0] * 4
        assert daemon.info()["worker_restarts"] == 0
        del h, safe
        another_worker(daemon)
        assert session.full(3, 1.0, device=GPU).numpy().tolist() == [1.0] * 3


def test_the_gpus_health_is_told(gpu_daemon: Callable[..., Daemon]) -> None:
    # Without a keeper nobody takes this worker's place, so there is time to look.
    daemon = gpu_daemon("--no-keeper", pretend=FAILS)
    with eagle.connect(daemon.endpoint) as session:
        assert "there is no service 'eagled.device.cuda:0'" in health(daemon, "eagled.device.cuda:0")
        g, x = drift(session, device=GPU)
        assert "serving" in health(daemon, "eagled.device.cuda:0").lower()
        g.launch(2)
        with pytest.raises(eagle.EagleError, match=FAULT):
            g.launch()
        wait_until(
            lambda: (
                eaglectl("--endpoint", daemon.endpoint, "health", "eagled.device.cuda:0", check=False).returncode == 3
            ),
            "the GPU's health",
        )
        assert eaglectl("--endpoint", daemon.endpoint, "health", "eagled.device.cpu", check=False).returncode == 0
        # Everything for that GPU is refused from now on, with what happened; the rest goes on.
        for call in (x.numpy, lambda: session.zeros(3, device=GPU)):
            with pytest.raises(eagle.EagleError, match="is lost to this process"):
                call()
        assert session.full(3, 2.0, device="cuda:1").numpy().tolist() == [2.0] * 3
        assert session.full(3, 2.0).tolist() == [2.0] * 3
        assert "it has no keeper" in daemon.log()
        assert daemon.info()["gpus"][0]["lost"]


def test_work_on_the_cpu_is_finished_before_the_worker_goes(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend=FAILS)
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        g, _ = drift(session, device=GPU)
        long, kept = drift(other, "long")
        g.launch(2)
        beside = Beside(lambda: long.launch(200_000))
        with pytest.raises(eagle.EagleError, match=FAULT):
            g.launch()
        assert not isinstance(beside.result(), BaseException), beside.result()
        assert kept.tolist() == [200_000.0] * 4
        another_worker(daemon)


def test_a_graph_whose_gpu_faults_again_is_not_built_any_more(gpu_daemon: Callable[..., Daemon]) -> None:
    daemon = gpu_daemon(pretend="devices=1,fail_launch=1")
    with eagle.connect(daemon.endpoint) as session:
        for restarts in (1, 2):
            g, _ = drift(session, device=GPU)
            with pytest.raises(eagle.EagleError, match=FAULT):
                g.launch()
            wait_until(lambda restarts=restarts: daemon.info()["worker_restarts"] == restarts, "the next worker")
        with pytest.raises(eagle.EagleError, match="was running when a worker died, 2 times"):
            drift(session, device=GPU)
        assert "drift" in eaglectl("--endpoint", daemon.endpoint, "quarantine").stdout
        assert session.full(3, 1.0).tolist() == [1.0] * 3


def test_in_process_the_gpu_is_lost_and_the_host_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import eagle, numpy as np
from models import affine
with eagle.local() as session:
    x = session.zeros(4, device="cuda:0")
    g = eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()
    for call in (g.launch, x.numpy):
        try:
            call()
        except eagle.EagleError as error:
            assert "is lost to this process" in str(error), error
        else:
            raise AssertionError(call)
    y = session.zeros(4)
    eagle.Graph().add(eagle.plan(affine).bind(x=y, y=y, a=1.0, b=1.0)).build().launch()
    assert y.tolist() == [1.0] * 4
"""
    monkeypatch.setenv("EAGLE_FAKE_CUDA", "devices=1,fail_launch=1")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ---- a GPU that vanishes while nobody uses it


def looks_often(folder: Path) -> str:
    config = folder / "eagled.toml"
    config.write_text("[limits]\ngpu_probe_ms = 1\n")
    return str(config)


def test_a_gpu_that_vanishes_is_noticed_before_its_next_use(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    daemon = gpu_daemon("--config", looks_often(tmp_path), pretend=f"devices=2,vanish={gone}")
    with eagle.connect(daemon.endpoint) as session, eagle.connect(daemon.endpoint) as other:
        g, x = drift(session, device=GPU)
        lost_too = other.zeros(1 << 18, name="salt", device=GPU)
        on_host, kept = drift(other, "on the host")
        g.launch()
        gone.touch()
        another_worker(daemon)  # though nobody has asked for anything
        (fault,) = daemon.info()["gpu_faults"]
        assert (fault["device"], fault["planes"], fault["graphs"], fault["graph"]) == (GPU, 2, 1, "")
        assert "cuMemGetInfo: CUDA_ERROR_DEVICE_UNAVAILABLE" in fault["why"]
        rows = sorted((row["plane_labels"], row["graph_names"]) for row in fault["sessions"])
        assert rows == [(["salt"], []), (["small arrays"], ["drift"])]
        on_host.launch(2)
        assert kept.tolist() == [2.0] * 4
        for array in (x, lost_too):
            with pytest.raises(eagle.EagleError, match="lost with its worker: make the array again"):
                array.numpy()
        # The next worker has the GPU that is left, under a number that was another one's.
        again = session.full(3, 1.0, device="cuda")
        assert again.numpy().tolist() == [1.0] * 3
        assert daemon.info()["gpus"][0]["name"] == "fake GPU 1"


def test_a_vanished_gpu_does_not_serve(gpu_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    pretend = f"devices=2,vanish={gone}"
    daemon = gpu_daemon("--no-keeper", "--config", looks_often(tmp_path), pretend=pretend)
    with eagle.connect(daemon.endpoint) as session:
        x = session.zeros(3, device=GPU)
        gone.touch()
        wait_until(lambda: "cuda:0" in str(daemon.info()["gpu_faults"]), "the report")
        assert eaglectl("--endpoint", daemon.endpoint, "health", f"eagled.device.{GPU}", check=False).returncode == 3
        with pytest.raises(eagle.EagleError, match="is lost to this process"):
            x.numpy()
        assert session.full(3, 2.0, device="cuda:1").numpy().tolist() == [2.0] * 3


# ---- out of memory


def test_memory_that_is_not_there_is_refused_with_sizes_and_nothing_is_lost(
    gpu_daemon: Callable[..., Daemon],
) -> None:
    daemon = gpu_daemon(pretend="devices=1,fail_alloc=4")
    with eagle.connect(daemon.endpoint) as session:
        x = session.full(4, 2.0, device=GPU)
        before = daemon.info()["gpus"]

        def builds() -> None:
            for number in range(8):  # one of the allocations of a build, whichever that is
                eagle.Graph(name=str(number)).add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build()

        with pytest.raises((eagle.EagleError, MemoryError), match=r"bytes free of .*, and .* were asked for"):
            builds()
        assert daemon.info()["gpus"] == before
        assert daemon.info()["gpu_faults"] == []
        eagle.Graph().add(eagle.plan(affine).bind(x=x, y=x, a=1.0, b=1.0)).build().launch()
        assert np.asarray(x).tolist() == [3.0] * 4
        assert daemon.info()["worker_restarts"] == 0
