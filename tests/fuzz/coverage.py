"""Prints what llvm-cov counted, as lines reached in each folder of this project.

Usage: llvm-cov export --summary-only ... | coverage.py TARGET ROOT
"""

import json
import sys
from collections import defaultdict
from pathlib import Path


def main() -> None:
    target, root = sys.argv[1], Path(sys.argv[2])
    reached: dict[str, int] = defaultdict(int)
    there: dict[str, int] = defaultdict(int)
    for file in json.load(sys.stdin)["data"][0]["files"]:
        path = Path(file["filename"])
        if root not in path.parents:
            continue
        folder = path.relative_to(root).parent
        if folder.parts[0] not in ("engine", "server", "proto") or path.stem.startswith("testing"):
            continue
        reached[str(folder)] += file["summary"]["lines"]["covered"]
        there[str(folder)] += file["summary"]["lines"]["count"]
    print(f"{target}: lines reached by its corpus")
    for folder in sorted(there):
        if reached[folder]:
            share = 100 * reached[folder] / there[folder]
            print(f"  {folder:24} {reached[folder]:6} of {there[folder]:6}  {share:5.1f} %")


if __name__ == "__main__":
    main()
