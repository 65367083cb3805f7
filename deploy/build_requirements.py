"""Prints what a pyproject.toml needs to build and to run, one requirement a line: build_requirements.py FILE"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text())
for requirement in (*project["build-system"]["requires"], *project["project"].get("dependencies", ())):
    print(requirement)
