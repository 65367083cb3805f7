"""docs/manual/gradients.md from its top to its end, with JAX; tests/docs runs in a daemon what of it needs no JAX."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/manual/gradients.md"


def test_the_page_runs_with_jax(jax, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert any(block.startswith("import jax\n") for block in blocks)
    (tmp_path / "page.py").write_text("".join(blocks))
    program = "import eagle\nwith eagle.local():\n    import page\n"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False
    )
    assert ran.returncode == 0, ran.stderr
