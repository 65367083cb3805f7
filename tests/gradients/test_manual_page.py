"""docs/manual/gradients.md from its top to its end, with a framework; tests/docs runs in a daemon what needs none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/manual/gradients.md"
FRAMEWORKS = ("jax", "torch")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_page_runs_with_its_framework(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> None:
    request.getfixturevalue(name)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert any(block.startswith(f"import {name}\n") for block in blocks)
    others = tuple(f"import {other}\n" for other in FRAMEWORKS if other != name)
    (tmp_path / "page.py").write_text("".join(block for block in blocks if not block.startswith(others)))
    program = "import eagle\nwith eagle.local():\n    import page\n"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False
    )
    assert ran.returncode == 0, ran.stderr
