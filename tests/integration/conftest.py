from pathlib import Path

import pytest
from harness import HERE, compile_shared

pytest_plugins = ["daemons", "gpus", "gpu_package", "users"]


@pytest.fixture(scope="session")
def socket_meter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("meter") / "socket_meter.so"
    compile_shared(HERE / "socket_meter.c", library, "-O2")
    return library
