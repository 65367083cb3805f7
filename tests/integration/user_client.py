"""A client that runs the blocks of Python on its stdin, each ended by a line `go`. It answers each with a line of JSON:
["ok", what the block called `said`], or the class and the text of what it raised.
"""

import json
import sys
from typing import Any

import eagle
import numpy as np
from eagle import Param, Scalar


@eagle.kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y  # noqa: RET504 (it names the plane)


def block() -> str:
    lines = []
    for line in sys.stdin:
        if line == "go\n":
            return "".join(lines)
        lines.append(line)
    sys.exit()


names: dict[str, Any] = {"np": np, "eagle": eagle, "affine": affine}
while True:
    code, names["said"] = block(), None
    try:
        exec(code, names)
        print(json.dumps(["ok", names["said"]]), flush=True)
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
