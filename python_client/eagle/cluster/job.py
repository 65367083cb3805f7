"""A batch as an indexed job: pods, or any processes that are told their number, each of which runs its shards.

::

    python -m eagle.cluster.job run model.py --samples 1e9 --chunk 1048576 --output results --index 3 --of 64
    python -m eagle.cluster.job combine model.py --output results

``model.py`` has a function ``run(session, shard)``, which runs samples [base, base + count) of a batch of n and returns
what :func:`eagle.simulate` returned; ``planes``, if it is there, names the planes that are to be written.

Process i of k has shards i, i + k, i + 2k, ...: each writes a chunk of every plane (``--format zarr``, one array a
plane, or ``npy``, one file a shard) and then a record that the shard is done. A chunk appears whole or not at all, and
a shard that has its record is not run again: a job that was killed goes on where it stood. ``combine`` needs the
records alone: it checks that the batch is complete and writes ``result.json``, reductions and integer Accums included,
with the bits of one run.

Exit status: 0, 2 where trying again does not help (a mistake in model or options), 75 where it may (a daemon went
away).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator, Sequence

import numpy as np

import eagle
from eagle import _core
from eagle._results import RunReport, SimResult
from eagle._running import whole
from eagle.cluster._cuts import LEAF, shards_of, sizes_of
from eagle.errors import DaemonUnavailable, EagleError, SessionClosed, WorkerRestarted, refusal
from eagle.session import Array, Session

_RECORDS = "shards"
_AGAIN, _MISTAKE = 75, 2


class Batch:
    """A folder of results: what is to be in it, and what is there."""

    def __init__(self, output: Path, program: Path, samples: int, chunk: int, form: str) -> None:
        self.output = output
        if chunk % LEAF and chunk < samples:
            raise refusal("BAD_VALUE", f"job: --chunk {chunk}: expected a multiple of {LEAF}, where reductions are cut")
        self.shards = shards_of(sizes_of(samples, chunk, where="job: --chunk"))
        self.identity = {
            "samples": samples,
            "chunk": chunk,
            "format": form,
            "program": hashlib.sha256(program.read_bytes()).hexdigest(),
            "version": _core.__version__,
        }

    @staticmethod
    def found(output: Path, program: Path) -> Batch:
        """The batch that a folder holds, which this program made."""
        path = next(iter(sorted((output / _RECORDS).glob("*.json"))), None)
        if path is None:
            raise refusal("BAD_VALUE", f"job: {output} holds no shard that is done; run the batch first")
        said = json.loads(path.read_text())["batch"]
        return Batch(output, program, said["samples"], said["chunk"], said["format"])

    def record(self, number: int) -> dict[str, Any] | None:
        """What was written of a shard, where that is complete. Refuses the record of another batch."""
        path = self._record_path(number)
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text())
        if record["batch"] != self.identity:
            differs = ", ".join(key for key, value in self.identity.items() if record["batch"].get(key) != value)
            raise refusal(
                "BAD_VALUE",
                f"job: {path} is of another batch (its {differs} is another one); give each batch a folder of its own",
            )
        there = all(
            chunk.is_file() and chunk.stat().st_size == size for chunk, size in self._chunks(record["chunks"], number)
        )
        return record if there else None

    def write(self, number: int, result: SimResult, names: Sequence[str]) -> None:
        """Writes the chunks of a shard, and then that it is done."""
        part = result._shard
        if part is None or part.place != self.shards[number]:
            raise refusal(
                "BAD_VALUE",
                f"job: run() gave a result of shard {None if part is None else part.place}, expected "
                f"{self.shards[number]}; pass shard=shard to eagle.simulate",
            )
        unknown = [name for name in names if part.roles.get(name) != "sample"]
        if unknown:
            raise refusal("BAD_VALUE", f"job: planes: '{unknown[0]}' is no plane with one element a sample")
        chunks = {}
        for name in names or [name for name, role in part.roles.items() if role == "sample"]:
            array = np.ascontiguousarray(result[name])
            chunks[name] = self._write_chunk(name, number, array)
        sums = {
            name: _stored(np.asarray(result[name]))
            for name, role in part.roles.items()
            if role == "accum" or (role == "reduce" and result.steps == 0)
        }
        told = base64.b64encode(part.told).decode()
        record = {"batch": self.identity, "shard": part.place, "told": told, "chunks": chunks, "roles": part.roles}
        _write(self._record_path(number), json.dumps({**record, "sums": sums}).encode())

    def combined(self) -> dict[str, Any]:
        """What one run of all samples would have told. Refuses a batch that is not complete."""
        records = [self.record(number) for number in range(len(self.shards))]
        missing = [number for number, record in enumerate(records) if record is None]
        if missing:
            raise refusal(
                "BAD_VALUE",
                f"job: {len(missing)} of {len(records)} shards are not done, the first is {missing[0]}; run the job "
                "again: it takes up those alone",
            )
        done = [record for record in records if record is not None]
        found = _core.combine_shards([base64.b64decode(record["told"]) for record in done])
        report = RunReport.of(found.report)
        values: dict[str, Any] = {}
        for index, (_, name) in enumerate(found.report.reductions):
            bits = found.reduced(index)
            values[name] = {"hex": bits.hex()} if bits is not None else done[0]["sums"][name]
        for name, role in done[0]["roles"].items():
            if role == "accum":
                values[name] = _added(name, [record["sums"][name] for record in done])
        for left in self.output.rglob(".*.tmp"):  # of processes that were killed
            left.unlink(missing_ok=True)
        return {
            "batch": self.identity,
            "shards": len(done),
            "status": found.status,
            "steps": report.steps,
            "finished": report.finished,
            "values": values,
        }

    # ---- details

    def _record_path(self, number: int) -> Path:
        return self.output / _RECORDS / f"{number:08d}.json"

    def _chunks(self, chunks: dict[str, Any], number: int) -> Iterator[tuple[Path, int]]:
        for name, said in chunks.items():
            yield self._chunk_path(name, number, said["axes"]), said["bytes"]

    def _chunk_path(self, name: str, number: int, axes: int) -> Path:
        if self.identity["format"] == "npy":
            return self.output / name / f"{number:08d}.npy"
        return self.output / name / ".".join(["0"] * (axes - 1) + [str(number)])

    def _write_chunk(self, name: str, number: int, array: Array) -> dict[str, Any]:
        path = self._chunk_path(name, number, array.ndim)
        if self.identity["format"] == "npy":
            _write(path, _npy(array))
        else:
            size, samples = self.identity["chunk"], self.identity["samples"]
            kind = array.dtype.newbyteorder("<").str
            about = {
                "zarr_format": 2,
                "shape": [*array.shape[:-1], samples],
                "chunks": [*(max(extent, 1) for extent in array.shape[:-1]), size],
                "dtype": kind,
                "compressor": None,
                "fill_value": False if kind == "|b1" else 0,
                "order": "C",
                "filters": None,
            }
            _write(path.with_name(".zarray"), json.dumps(about, indent=1).encode())  # the same from every process
            _write(self.output / ".zgroup", b'{"zarr_format": 2}')
            padded = np.zeros((*array.shape[:-1], size), array.dtype)
            padded[..., : array.shape[-1]] = array
            _write(path, padded.astype(kind, copy=False).tobytes())
        return {"axes": array.ndim, "bytes": path.stat().st_size}


def run(batch: Batch, program: ModuleType, index: int, of: int, session: Session) -> tuple[int, int]:
    """Runs the shards of process ``index`` of ``of`` that are not done. Returns (run, found done)."""
    ran = skipped = 0
    for number in range(index, len(batch.shards), of):
        if batch.record(number) is not None:
            skipped += 1
            continue
        result = program.run(session, batch.shards[number])
        if not isinstance(result, SimResult):
            raise refusal(
                "WRONG_TYPE", f"job: run() returned {type(result).__name__}, expected the result of eagle.simulate"
            )
        batch.write(number, result, getattr(program, "planes", ()))
        ran += 1
        print(f"shard {number} of {len(batch.shards)}: {result.status}, {result.steps} steps", flush=True)
    return ran, skipped


def load(path: Path) -> ModuleType:
    """The module that a file is; refuses one without ``run``."""
    if not path.is_file():
        raise refusal("BAD_VALUE", f"job: there is no file {path}")
    spec = importlib.util.spec_from_file_location("eagle_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["eagle_job"] = module  # where kernels look for the names around them
    spec.loader.exec_module(module)
    if not callable(getattr(module, "run", None)):
        raise refusal("BAD_VALUE", f"job: {path} has no function run(session, shard)")
    return module


def _npy(array: Array) -> bytes:
    from io import BytesIO

    data = BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=False)
    return data.getvalue()


def _write(path: Path, data: bytes) -> None:
    """The file appears whole or not at all, also where two write it at once or the machine stops."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    with made.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)


def _stored(array: Array) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": array.shape, "hex": array.tobytes().hex()}


def _added(name: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    arrays = [np.frombuffer(bytes.fromhex(part["hex"]), part["dtype"]).reshape(part["shape"]) for part in parts]
    if arrays[0].dtype.kind != "i":
        raise refusal(
            "BAD_VALUE",
            f"job: '{name}' is an accumulator of reals, which one shard would have to pass on to the next; add "
            "integers, or use a Reduce",
        )
    return _stored(np.sum(arrays, axis=0, dtype=arrays[0].dtype))


def _number(text: str) -> int:
    value = float(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"expected a whole number, found {text}")
    return whole("job", int(text) if text.isdigit() else int(value), least=0)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eagle.cluster.job", description="A batch as an indexed job.")
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run the shards of one process")
    runs.add_argument("--samples", type=_number, required=True, help="of the whole batch")
    runs.add_argument("--chunk", type=_number, required=True, help="samples of a shard, a multiple of 256")
    runs.add_argument("--index", type=int, default=os.environ.get("JOB_COMPLETION_INDEX"), help="of this process")
    runs.add_argument("--of", type=int, default=1, help="how many processes there are")
    runs.add_argument("--format", choices=("zarr", "npy"), default="zarr")
    runs.add_argument("--endpoint", help="of a daemon; default: the node's, else one of its own")
    runs.add_argument("--auth-file", type=Path, help="holds the token that the daemon asks for")
    combines = commands.add_parser("combine", help="check that the batch is complete, and write result.json")
    for command in (runs, combines):
        command.add_argument("program", type=Path, help="a file with a function run(session, shard)")
        command.add_argument("--output", type=Path, required=True, help="folder of the results")
    found = parser.parse_args(words)
    if found.command == "run" and (found.index is None or not 0 <= found.index < found.of):
        parser.error(
            f"--index {found.index} of {found.of}: expected 0 up to {found.of - 1}; an Indexed Job sets "
            "JOB_COMPLETION_INDEX"
        )
    if found.command == "run" and found.chunk < 1:
        parser.error("--chunk: expected at least 1")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """The program. Returns its exit status."""
    asked = _arguments(words)
    try:
        program = load(asked.program)
        if asked.command == "combine":
            found = Batch.found(asked.output, asked.program).combined()
            _write(asked.output / "result.json", json.dumps(found, indent=1).encode())
            print(f"{found['shards']} shards: {found['status']}, {found['steps']} steps, {found['finished']} finished")
            return 0
        batch = Batch(asked.output, asked.program, asked.samples, asked.chunk, asked.format)
        token = asked.auth_file.read_text().strip() if asked.auth_file else None
        with eagle.connect(asked.endpoint, auth=token) as session:
            ran, skipped = run(batch, program, asked.index, asked.of, session)
        print(f"{ran} shards run, {skipped} found done")
        return 0
    except (DaemonUnavailable, SessionClosed, WorkerRestarted) as error:
        print(f"{error.reason}: {error}", file=sys.stderr)
        return _AGAIN
    except (EagleError, OSError) as error:
        print(f"{getattr(error, 'reason', 'SYSTEM')}: {error}", file=sys.stderr)
        return _MISTAKE if isinstance(error, EagleError) else _AGAIN


if __name__ == "__main__":
    sys.exit(main())
