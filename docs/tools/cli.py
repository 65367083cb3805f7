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

ROOT = Path(__file__).resolve().parents[2]
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
    check = sys.argv[1:] == ["--check"]
    wrong = []
    for program, section, request in PROGRAMS:
        for kind, place in places(program, section).items():
            command = [BUILD / "bin" / program, *request, kind]
            said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
            if check:
                if not place.is_file() or place.read_text() != said:
                    wrong.append(str(place.relative_to(ROOT)))
            else:
                place.parent.mkdir(exist_ok=True)
                place.write_text(said)
    if wrong:
        print(f"not what the programs say: {', '.join(wrong)}; run docs/tools/cli.py", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
