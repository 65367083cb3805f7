"""A C++ project of somebody else's against the tarball, unpacked anywhere: by CMake's package, and by pkg-config's."""

import os
import subprocess
from pathlib import Path

import pytest
from harness import ROOT

CONSUMER = ROOT / "tests/consumer"
COMPILES_S = 400.0  # on a busy machine


def said(*command: object, **environment: str) -> str:
    ran = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMPILES_S,
        check=False,
    )
    assert ran.returncode == 0, f"{command}:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packages = Path(os.environ.get("EAGLE_PACKAGES_DIR", ROOT / "build/packages"))
    newest = max(packages.glob("eagled-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    folder = tmp_path_factory.mktemp("unpacked")
    said("tar", "--extract", "--gzip", "--directory", folder, "--file", newest)
    (found,) = folder.iterdir()
    return found.rename(folder / "another place")


@pytest.mark.timeout(900)
def test_the_consumer_finds_the_tarball_by_cmake(prefix: Path, tmp_path: Path) -> None:
    said("cmake", "-S", CONSUMER, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    said("cmake", "--build", tmp_path)
    said(tmp_path / "consumer", "--local")


@pytest.mark.timeout(900)
def test_the_consumer_finds_the_tarball_by_pkg_config(prefix: Path, tmp_path: Path) -> None:
    flags = said("pkg-config", "--cflags", "--libs", "eagle", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    said("sh", "-euc", f"c++ -std=c++20 '{CONSUMER}/consumer.cpp' -o '{tmp_path}/by-hand' {flags}")
    said(tmp_path / "by-hand", "--local", LD_LIBRARY_PATH=str(prefix / "lib"))
