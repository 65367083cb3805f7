"""A peer in a process and environment of its own: one JSON request a line, one reply a line.

    worker.py NAME                  serves requests
    worker.py NAME --once CASE      a case that is about a fresh process; prints its value

A module ``NAME_cases`` has CASES: a function by case, which takes the parameters and returns Work. Nothing here or
there imports our package, and nothing of the peers is in it: they are called as their own documents say.
"""

from __future__ import annotations

import base64
import importlib
import importlib.metadata
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
PACKAGES = {"raptor-eagle": "raptor-eagle", "numba": "numba", "jax": "jax", "warp": "warp-lang"}
MODULES = {"raptor-eagle": "raptor_cases", "numba": "numba_cases", "jax": "jax_cases", "warp": "warp_cases"}


def packed(array: Any) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "data": base64.b64encode(array.tobytes()).decode()}


def serve(name: str, replies: Any) -> None:
    from frame import sample

    cases = importlib.import_module(MODULES[name]).CASES
    works: list[Any] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "prepare":
            if request["case"] not in cases:
                return {"unavailable": "it has no such case"}
            works.append(cases[request["case"]](**request["params"]))
            return {"work": len(works) - 1, "answers": works[-1].answer is not None}
        work = works[request["work"]]
        if request["op"] == "drop":
            works[request["work"]] = None
            return {}
        if request["op"] == "answer":
            return {"arrays": [packed(sample(a)) for a in work.answer()]}
        work.reset()
        begin = time.perf_counter()
        found = work.run()
        took = time.perf_counter() - begin
        return {"value": took / work.units if found is None else found}

    print(json.dumps({"version": importlib.metadata.version(PACKAGES[name])}), file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"unavailable": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(reply), file=replies, flush=True)


def once(name: str, case: str) -> float:
    """import: seconds and MiB beyond numpy; first_result: seconds from the definition to the first result."""
    if case == "import":
        import cold  # beside our own

        modules = {"raptor-eagle": ["eagle", "hawk"], "numba": ["numba"], "jax": ["jax"], "warp": ["warp"]}[name]
        found = cold.imports(["numpy", *modules])
        return [sum(found[module][what] for module in modules) for what in (0, 1)]  # type: ignore[return-value]
    found = importlib.import_module(MODULES[name]).first_result()
    return float(found)


if __name__ == "__main__":
    out = sys.stdout
    sys.stdout = sys.stderr  # what a peer prints is no reply
    if sys.argv[2:3] == ["--once"]:
        print(json.dumps(once(sys.argv[1], sys.argv[3])), file=out, flush=True)
    else:
        serve(sys.argv[1], out)
