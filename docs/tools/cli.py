"""Writes the man pages and shell completions of eaglectl and eagled, which the programs make of their own definitions.

Usage:
    python3 docs/tools/cli.py           write them
    python3 docs/tools/cli.py --check   exit status 1 if one is not what its program says

The programs are those of $EAGLE_BUILD_DIR, else of build/release.
"""

import os
import subprocess
import sys
from pathlib import Path

from made_pages import ROOT, write_or_check

BUILD = Path(os.environ.get("EAGLE_BUILD_DIR", ROOT / "build" / "release"))

# Program, section of the manual, and how it is asked.
PROGRAMS = (("eaglectl", 1, ("document",)), ("eagled", 8, ("--document",)))


def places(program: str, section: int) -> dict[str, Path]:
    """By kind, under the name by which `man` or the shell finds it."""
    completion = ROOT / "docs/completion"
    return {
        "man": ROOT / f"docs/man/{program}.{section}",
        "bash": completion / f"{program}.bash",
        "zsh": completion / f"_{program}",
        "fish": completion / f"{program}.fish",
    }


def main() -> int:
    made = {}
    for program, section, request in PROGRAMS:
        for kind, place in places(program, section).items():
            command = [BUILD / "bin" / program, *request, kind]
            made[place] = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return write_or_check(made, "the programs say", "cli.py")


if __name__ == "__main__":
    sys.exit(main())
