"""The quickstart, as a newcomer runs it: from another folder, with nothing set, warm."""

import os
import subprocess

from harness import ROOT


def test_quickstart_prints_the_main_job(tmp_path):
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(
        ["bash", ROOT / "deploy/quickstart.sh"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for value in ("0.5405728050653854", "0.5405711223621569", "0.540569439656762", "finished", "eagle.Graph  "):
        assert value in result.stdout, result.stdout
    assert "1,000,000" in result.stdout or "1000000" in result.stdout
    assert os.listdir(tmp_path) == []
