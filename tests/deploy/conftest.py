"""Packages, and the roots that they are tried in."""

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("integration", "operations")]
pytest_plugins = ["daemons"]

from harness import ROOT  # noqa: E402


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of wheel, tarball and Debian packages, which tests/run.sh has made."""
    return Path(os.environ.get("EAGLE_PACKAGES_DIR", ROOT / "build/packages"))


@pytest.fixture
def one(packages: Path):
    """The newest package whose name fits."""

    def found(pattern: str) -> Path:
        names = sorted(packages.glob(pattern), key=lambda path: path.stat().st_mtime)
        assert names, f"no {pattern} in {packages}: bash deploy/package.sh wheel tarball deb"
        return names[-1]

    return found
