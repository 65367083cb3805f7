"""Rows that C++ programs measure, because what they are about begins or ends in C++ (``rows.h`` is their side)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from frame import BUILD, Bench, Bound, Form, Row, Unavailable, environment_of_children

PATIENCE_S = 600


def program_rows(
    bench: Bench,
    program: str,
    *options: str,
    only: Sequence[str] | None = None,
    bounds: Mapping[str, list[Bound]] | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """The rows of a program, or those titled as in ``only``; ``bounds`` by title; ``names`` for forms, by the
    program's own."""
    for row in run(bench, program, *options):
        if only is not None and row["row"] not in only:
            continue
        forms = []
        for form in row["forms"]:
            name = (names or {}).get(form["form"], form["form"])
            forms.append(Form(name, lambda: None, form["kind"], values=form["values"]))
        yield Row(row["row"], forms, (bounds or {}).get(row["row"], []), unit=row["unit"])


_known: dict[tuple[str, ...], Any] = {}


def run(bench: Bench, program: str, *options: str) -> Any:
    """What the program says; run once for all lines that ask the same."""
    path = BUILD / "bin" / program
    command = [str(path), "--json", "--repeats", str(bench.repeats), *options]
    if tuple(command) not in _known:
        if not path.is_file():
            raise Unavailable(f"no {path}; build it with `cmake --build {BUILD} --target {program}`")
        environment = environment_of_children()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise Unavailable(f"{program} ended with {done.returncode}: {done.stderr.strip()}")
        _known[tuple(command)] = json.loads(done.stdout)
    return _known[tuple(command)]
