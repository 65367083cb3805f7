"""The machine that a run is on, and what its twins have taken there before."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from frame import ROOT, Clock, Measured

# By machine and row: the least seconds that the row's fastest twin has taken. `table` is the machine of the table of
# performance; others are added by --record.
LIMITS = Path(__file__).resolve().parent / "limits.json"


def about(threads: int, repeats: int, peers: dict[str, str]) -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", cpuinfo, re.MULTILINE)
    names = set(flags.group(1).split()) if flags else set()
    vectors = next((name for name in ("avx512f", "avx2", "avx") if name in names), "no AVX")
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "cpu": model.group(1).strip() if model else platform.machine(),
        "vectors": vectors,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "threads": threads,
        "repeats": repeats,
        "peers": peers,
        "clock": "time" if Clock.passes() else "processor time of one process",
        "load_before": os.getloadavg()[0],
    }


def text(found: dict[str, Any]) -> str:
    peers = ", ".join(f"{name} {version}" for name, version in found["peers"].items()) or "none"
    return (
        f"{found['cpu']} ({found['vectors']}), {found['cpus']} CPUs, {found['memory_gib']} GiB; "
        f"{found['threads']} threads; {found['clock']}, minimum (median) of {found['repeats']}; "
        f"commit {found['commit']}; load average {found['load_before']:.1f}; peers: {peers}"
    )


class Limits:
    """What the fastest twin of a row takes on a machine like this one, as far as it is known."""

    def __init__(self, found: dict[str, Any]) -> None:
        kind = f"{found['cpu']}, {found['vectors']}, {found['cpus']} CPUs, {found['threads']} threads"
        self.key = kind if Clock.passes() else f"{kind}, {found['clock']}"
        self._all: dict[str, dict[str, float]] = json.loads(LIMITS.read_text())
        two = found["threads"] == found["cpus"] == 2 and Clock.passes()
        table = two and "Xeon" in found["cpu"] and found["vectors"] == "avx512f"
        self._known = {**(self._all["table"] if table else {}), **self._all.get(self.key, {})}

    def of(self, measured: Measured) -> float | None:
        return self._known.get(self.name(measured))

    @staticmethod
    def name(measured: Measured) -> str:
        return f"{measured.line}: {measured.row.title}"

    def keep(self, rows: Iterable[Measured]) -> None:
        """What was faster than known is known from now on."""
        mine = self._all.setdefault(self.key, {})
        for measured in rows:
            if (limit := measured.limit()) is not None:
                name, least = self.name(measured), measured.least(limit)
                mine[name] = float(f"{min(least, mine.get(name, least)):.4g}")
        LIMITS.write_text(json.dumps(self._all, indent=1, sort_keys=True) + "\n")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
