"""A real cluster of each kind: a scheduler and four workers of Dask as processes, a local Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import eagle
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
pytest_plugins = ["daemons"]

from clusters import DaskCluster  # noqa: E402
from harness import HERE, compile_shared  # noqa: E402


@pytest.fixture(scope="session")
def meter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts the bytes of a process' sockets from outside."""
    library = tmp_path_factory.mktemp("meter") / "socket_meter.so"
    compile_shared(HERE / "socket_meter.c", library, "-O2")
    return library


@pytest.fixture(scope="module")
def shared_dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Four worker processes, each of which starts a daemon of its own; for tests that leave them as they are."""
    pytest.importorskip("distributed", reason="dask could not be installed (tests/scale/make_venv.sh)")
    with DaskCluster(tmp_path_factory.mktemp("dask"), workers=4) as cluster:
        yield cluster


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """One of the test's own, to kill parts of."""
    pytest.importorskip("distributed", reason="dask could not be installed (tests/scale/make_venv.sh)")
    with DaskCluster(tmp_path, workers=4) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray_here() -> Iterator[str]:
    """Ray on this machine; its address, by which programs of the tests find it (RAY_ADDRESS)."""
    ray = pytest.importorskip("ray", reason="ray could not be installed (tests/scale/make_venv.sh)")
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    for left in (2, 1, 0):  # it gives up on its own processes after half a minute, whatever keeps the machine busy
        try:
            ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
            break
        except Exception as error:
            ray.shutdown()
            if not left or "timed out during startup" not in str(error):
                raise
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture
def session() -> Iterator[eagle.Session]:
    """Where the one unsharded run is: what every sharded one is compared with."""
    with eagle.local(threads=2) as opened:
        yield opened


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> np.random.Generator:
    """Numbers of the test's own, always the same."""
    return np.random.default_rng([20261130, len(request.node.name)])
