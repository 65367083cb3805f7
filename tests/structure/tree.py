"""The files of the repository, as the structure tests see them."""

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Made by builds and tools; everything else in the checkout is ours.
NOT_OURS = {".git", ".venv", "build", "shared", "__pycache__", ".ruff_cache", ".mypy_cache", ".pytest_cache"}


@cache
def files() -> tuple[Path, ...]:
    """Every file of ours, relative to the root, sorted."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.endswith(".egg-info")]
        found.extend(
            Path(folder, name).relative_to(ROOT)
            for name in names
            if name != ".git" and not name.endswith((".so", ".pyc"))
        )
    return tuple(sorted(found))


def text(path: Path) -> str:
    return texts()[path]


@cache
def texts() -> dict[Path, str]:
    """The files that hold text, with it."""
    found = {}
    for path in files():
        content = (ROOT / path).read_bytes()
        if b"\0" not in content and "corpus" not in path.parts:
            found[path] = content.decode("utf-8")
    return found


def with_suffix(*suffixes: str) -> list[Path]:
    return [path for path in files() if path.suffix in suffixes]


def folder_of(path: Path) -> str:
    """'engine/plane' for engine/plane/view.h, 'client' for client/remote/x.cpp: the part it belongs to."""
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] == "engine" and len(parts) > 2 else parts[0]
