"""The README's programs run as they stand there, and print what it says they print."""

import re
import subprocess
import sys

import pytest
from harness import PATIENCE_S, ROOT

README = (ROOT / "README.md").read_text()
# A fenced block of Python, and the block of text that follows it as "prints", if there is one.
PROGRAM = re.compile(
    r"^```python\n(.*?)^```\n(?:\n[^\n]*\bprints?\b[^\n]*:\n\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
PROGRAMS = PROGRAM.findall(README)


def test_readme_has_programs_with_output():
    assert len(PROGRAMS) >= 2
    assert all(output for _, output in PROGRAMS)
    assert len(PROGRAMS) == README.count("```python")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program_of_the_readme(tmp_path, number):
    source, output = PROGRAMS[number]
    program = tmp_path / "program.py"
    program.write_text(source)
    result = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == output


def test_commands_of_the_readme_exist():
    commands = re.findall(r"^bash (\S+)", README, re.MULTILINE)
    assert {"deploy/quickstart.sh", "tests/run.sh"} <= set(commands)
    assert [command for command in commands if not (ROOT / command).is_file()] == []
