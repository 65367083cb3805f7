"""What is to be done with a batch: the model described, its arguments checked and cut."""

from __future__ import annotations

import inspect
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from eagle import _core, stepping
from eagle._addresses import param_number
from eagle._kernel import Kernel
from eagle._policies import policies
from eagle._running import seconds_of, whole
from eagle.cluster._cuts import common_sizes, shards_of, sizes_of
from eagle.cluster._kernels import described, kernel_of
from eagle.cluster._sources import Source, samples_of, source_of
from eagle.errors import refusal, text

#: Names that arguments of kernels may not have: they are keywords of ``simulate``.
RESERVED = frozenset(
    name
    for name, parameter in inspect.signature(stepping.simulate).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
) | {"chunks", "endpoint", "retries", "late"}


class Work(NamedTuple):
    """A batch, ready to be cut and sent."""

    message: dict[str, Any]  # what every shard is sent, as plain values
    sources: dict[str, Source]  # of planes with one element a sample
    tables: dict[str, Source]  # whole for every shard
    sums: dict[str, Source]  # integer accumulators: the first shard starts from it, the others from zeros
    passed: dict[str, Source]  # accumulators of reals, which one shard passes on to the next
    shards: list[tuple[int, int, int]]


def work_of(
    where: str,
    model: Any,
    arguments: Mapping[str, Any],
    *,
    until: Any,
    chunks: Any,
    parts: int,
    endpoint: Any,
    options: Mapping[str, Any],
    renamed: Sequence[Sequence[tuple[str, str]]] | None = None,
) -> Work:
    """Checks what is asked for and describes it. ``renamed``: other names for the arguments of each kernel."""
    kernels = [kernel_of(where, part) for part in (model if isinstance(model, (list, tuple)) else [model])]
    if not kernels:
        raise refusal("BAD_VALUE", f"{where}: an empty model; give it at least one kernel")
    if until is not None:
        kernels.append(kernel_of(f"{where}: until", until))
    names = list(renamed or [()] * len(kernels))
    for kernel in kernels:
        for name in sorted(RESERVED.intersection(kernel.arguments)):
            raise refusal(
                "BAD_BINDING",
                f"{where}: kernel '{kernel.name}' has an argument '{name}', a keyword here; rename it",
            )
    real = _real_of(where, kernels, names, arguments)
    descriptions = [described(where, kernel, real, new) for kernel, new in zip(kernels, names)]
    rows = [row for found in descriptions for row in _core.kernel_from_bytes(found.kernel).arguments]
    planes = _Planes(where, rows, arguments)
    sizes = planes.sizes(chunks, parts)
    message = {
        "version": _core.__version__,
        "where": where,
        "label": "_".join(dict.fromkeys(kernel.name for kernel in kernels)),
        "kernels": [tuple(found) for found in descriptions],
        "until": until is not None,
        "params": planes.params,
        "states": planes.states,
        "mask": planes.mask,
        "endpoint": text(f"{where}: endpoint", endpoint) or None,
        "options": _checked(where, options),
    }
    return Work(message, planes.samples, planes.tables, planes.sums, planes.passed, shards_of(sizes))


def _checked(where: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run, looked at here already: a mistake is one line, and not one a shard."""
    found = {name: value for name, value in options.items() if value is not None}
    found["max_steps"] = whole(f"{where}: max_steps", options["max_steps"])
    if "timeout" in found:
        found["timeout"] = seconds_of(where, found["timeout"])
    policies(where, found.get("dispatch"))
    return found


def _real_of(
    where: str, kernels: Sequence[Kernel], renamed: Sequence[Sequence[tuple[str, str]]], arguments: Mapping[str, Any]
) -> str:
    """The type of reals of the model, as the float arrays of its planes say; of both, the two are named."""
    found: dict[str, str] = {}
    for kernel, new in zip(kernels, renamed):
        names = dict(new)
        for argument in kernel.arguments:
            name = names.get(argument, argument)
            kind = getattr(arguments.get(name), "dtype", None)
            if kernel.role(argument).kind != "param" and kind in (np.float64, np.float32):
                found.setdefault("f64" if kind == np.float64 else "f32", name)
    if len(found) == 2:
        raise refusal(
            "WRONG_DTYPE",
            f"{where}: '{found['f64']}' is float64 and '{found['f32']}' is float32; cast one of them, for example "
            f"{found['f32']}.astype('float64')",
        )
    return next(iter(found), "f64")


class _Planes:
    """The arguments of a model by what its kernels do with them."""

    def __init__(self, where: str, rows: Sequence[Any], arguments: Mapping[str, Any]) -> None:
        self._where = where
        self.params: dict[str, Any] = {}
        self.samples: dict[str, Source] = {}
        self.tables: dict[str, Source] = {}
        self.sums: dict[str, Source] = {}
        self.passed: dict[str, Source] = {}
        self.reduces = any(role == "reduce" for _, role, _, _ in rows)
        left = dict(arguments)
        made: set[str] = set()
        seen: dict[str, str] = {}
        masks: list[str] = []
        for name, role, scalar, _ in rows:
            first = name not in seen
            masks += [name] if role == "terminated" else []
            seen[name] = _stronger(seen.get(name), role)
            if role in ("output", "reduce"):
                made.add(name)
                continue
            if not first or name in made:
                continue
            if name in left:
                self._take(name, role, scalar, left.pop(name))
            elif role != "terminated":
                state = "state " if role == "mutable" else ""
                raise refusal("BAD_BINDING", f"{where}: {state}'{name}' is missing: pass {name}=")
        if left:
            name = next(iter(left))
            raise refusal(
                "BAD_BINDING",
                f"{where}: "
                + (
                    f"'{name}' is an output, which is made where it is computed; leave it out"
                    if name in made
                    else f"there is no argument '{name}'; the model takes {', '.join(map(repr, seen))}"
                ),
            )
        #: The finish mask, where a worker is to make it.
        self.mask = masks[0] if masks and not any(name in arguments for name in masks) else None
        #: Planes that a run changes: it is given copies of them, so that a shard can be run again.
        self.states = [name for name, role in seen.items() if role in ("mutable", "terminated", "accum")]
        self.n = self._samples()

    def _take(self, name: str, role: str, scalar: str, value: Any) -> None:
        if role == "param":
            self.params[name] = param_number(f"{self._where}: '{name}'", value)
            return
        source = source_of(self._where, name, value)
        if role == "table":
            self.tables[name] = source
        elif role == "accum":
            (self.passed if scalar in ("f64", "f32") else self.sums)[name] = source
        else:
            self.samples[name] = source

    def _samples(self) -> int:
        counts = {name: samples_of(source) for name, source in self.samples.items()}
        if not counts:
            raise refusal(
                "BAD_BINDING",
                f"{self._where}: no array says how many samples there are; the model needs a plane with one element a "
                "sample",
            )
        first = next(iter(counts))
        for name, n in counts.items():
            if n != counts[first]:
                raise refusal(
                    "SAMPLE_MISMATCH",
                    f"{self._where}: '{first}' has {counts[first]:,} samples and '{name}' {n:,}; samples are along the "
                    "last axis",
                )
        return counts[first]

    def sizes(self, chunks: Any, parts: int) -> tuple[int, ...]:
        """The cuts: as asked for, else as the arrays come, else one a worker."""
        if chunks is None:
            own = {name: source.sizes for name, source in self.samples.items() if source.sizes is not None}
            chunks = common_sizes(self._where, own)
        return sizes_of(self.n, chunks, parts=parts, leaves=self.reduces, where=self._where)


def _stronger(known: str | None, role: str) -> str:
    """What a plane is that several arguments share: changed if one changes it."""
    return role if known is None or role in ("mutable", "terminated", "accum") else known
