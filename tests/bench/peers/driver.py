"""Peers as processes that are asked over pipes, so that they take turns with ours in one run."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from frame import PEER, ROOT, Form, Unavailable, WrongAnswer

HERE = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / "build" / "peers"
NAMES = ("raptor-eagle", "numba", "jax", "warp")
IN_A_FRESH_PROCESS = ("first_result", "import")
PATIENCE_S = 600.0  # one of them calls a C++ compiler


class Peer:
    """One package's process. Raises Unavailable where it cannot be started. ``device``: "cuda:0", or the CPU."""

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self._device = device
        self._python = ENVIRONMENT / "bin" / "python"
        if not self._python.exists():
            raise Unavailable("not installed: run tests/bench/peers.sh")
        self._process = subprocess.Popen(
            [self._python, HERE / "worker.py", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(ENVIRONMENT / f"{name}.log").open("w"),
            env=self._environment(),
        )
        try:
            self.version: str = self._reply()["version"]
        except WrongAnswer as error:
            self.close()
            raise Unavailable(f"not installed, or it does not start ({error}); see {ENVIRONMENT}/{name}.log") from None

    def form(self, case: str, tolerance: float, params: dict[str, Any]) -> Form:
        """This peer's form of a case. Unavailable where it has none."""
        if case in IN_A_FRESH_PROCESS:
            what = params.get("what")
            return Form(self.name, lambda: self._once(case, what), PEER)
        found = self._ask(op="prepare", case=case, params=params)
        if "unavailable" in found:
            raise Unavailable(found["unavailable"])
        number = found["work"]

        def run() -> float:
            reply = self._ask(op="run", work=number)
            if "unavailable" in reply:
                raise WrongAnswer(f"{self.name}: {case}: {reply['unavailable']}")
            return float(reply["value"])

        def answer() -> list[np.ndarray]:
            # Already sampled as `frame.sample` does it, which leaves small arrays but for their order.
            arrays = self._ask(op="answer", work=number)["arrays"]
            return [np.frombuffer(base64.b64decode(a["data"]), dtype=a["dtype"])[::-1] for a in arrays]

        return Form(self.name, run, PEER, answer=answer if found["answers"] else None, tolerance=tolerance)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EAGLE", "PYTHON"))}
        platform, _, number = self._device.partition(":")
        if number:
            kept["JAX_CUDA_VISIBLE_DEVICES"] = number  # JAX's first one is the one that is meant
        return {**kept, "JAX_PLATFORMS": platform, "JAX_ENABLE_X64": "1", "BENCH_DEVICE": self._device}

    def _once(self, case: str, what: int | None) -> float:
        command = [self._python, HERE / "worker.py", self.name, "--once", case]
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode != 0:
            raise WrongAnswer(f"{self.name}: {case}: {done.stderr.strip()[-300:]}")
        found = json.loads(done.stdout)
        return float(found if what is None else found[what])

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WrongAnswer(f"{self.name} ended with {self._process.wait()}") from None
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        if not select.select([self._process.stdout], [], [], deadline - time.monotonic())[0]:
            raise WrongAnswer(f"{self.name} said nothing for {PATIENCE_S:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise WrongAnswer(f"{self.name} ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def start_peers(names: Sequence[str] = NAMES, device: str = "cpu") -> dict[str, Peer]:
    """Those that can be started; the others are named and left out."""
    found = {}
    for name in names:
        try:
            found[name] = Peer(name, device)
        except Unavailable as why:
            print(f"without {name}: {why}", flush=True)
    return found
