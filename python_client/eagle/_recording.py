"""Recording: rows of planes as a run goes on, in memory or in .npy files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import IO, TYPE_CHECKING, Any, Iterable

import numpy as np

from eagle._model import Model
from eagle.errors import EagleError, refusal
from eagle.session import Array, Session

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK_BYTES = 8 << 20  # of the rows that wait to be written to a file
_HEADER_BYTES = 256


class _RowFile:
    """A .npy file of the rows of one plane. Whatever ends the run, it holds the rows that were appended.

    It takes its place with :meth:`appear`, whole. What stood there before is left as it is until then, and for those
    who have it open or mapped for ever.
    """

    def __init__(self, path: Path, plane: Array) -> None:
        self._plane = plane
        self._rows = 0
        self._place = type(path)(os.path.realpath(path))  # what a link leads to, and not the link
        try:
            found: os.stat_result | None = os.stat(self._place)
        except FileNotFoundError:
            found = None
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EEXIST, "there is something that is no file")
        self._hidden: Path | None = self._place.with_name(f".eagle-rows-{os.urandom(8).hex()}")
        self._file: IO[bytes] = open(self._hidden, "xb")  # noqa: SIM115
        if found is not None:
            with contextlib.suppress(OSError):
                os.fchmod(self._file.fileno(), stat.S_IMODE(found.st_mode))
        try:
            self._head()
        except OSError:
            self.close()
            raise

    def appear(self) -> None:
        """Puts the file where it belongs."""
        if self._hidden is not None:
            os.replace(self._hidden, self._place)
            self._hidden = None

    def append(self, rows: Any, count: int) -> None:
        """Adds these ``count`` rows, and only then counts them in the head."""
        self._file.seek(_HEADER_BYTES + self._rows * self._plane.nbytes)
        self._file.write(np.ascontiguousarray(rows).tobytes())
        self._rows += count
        self._head()

    def _head(self) -> None:
        self._file.flush()
        self._file.seek(0)
        self._file.write(_header(self._plane, self._rows))
        self._file.flush()

    def close(self) -> None:
        """One that has not appeared never was."""
        self._file.close()
        if self._hidden is not None:
            self._hidden.unlink(missing_ok=True)
            self._hidden = None


class Recording:
    """The rows of the named planes of a model, one for each ``every`` steps, the state at the start included.

    Without ``to`` they are planes of the session, as many rows as ``max_steps`` can make. With it, a few rows wait in
    memory and go to ``.npy`` files as they come: ``to`` is a path (with ``{name}`` in it, or of one plane), or paths by
    name.
    """

    def __init__(self, where: str, model: Model, names: list[str], every: int, max_steps: int, to: Any) -> None:
        self._where = where
        self._planes = {name: model.planes[name] for name in names}
        self.every = every
        self._rows = 1 + max_steps // every
        self._drained = 0
        self._files: dict[str, _RowFile] = {}
        row_bytes = sum(max(plane.nbytes, 1) for plane in self._planes.values())
        self._paths = None if to is None else _paths(where, names, to)
        if self._paths is not None:
            self._rows = max(2, min(self._rows, _CHUNK_BYTES // row_bytes))
        self.arrays = self._made(model.session, model.device, row_bytes)

    @property
    def initial(self) -> bool:
        """Whether the run records its start itself."""
        return self._paths is None

    @property
    def drained_every(self) -> int | None:
        """Steps after which :meth:`drain` is due; None where the rows stay in memory."""
        return None if self._paths is None else self._rows * self.every

    def _made(self, session: Session, device: str | None, row_bytes: int) -> dict[str, Array]:
        size = self._rows * row_bytes
        text = (
            f"{self._where}: record: {self._rows} rows of {', '.join(map(repr, self._planes))} are {size} bytes; give "
            "a larger every=, a smaller max_steps=, or record_to='file.npy'"
        )
        # A GPU says itself what it has.
        if device is None and size > _most_bytes(session):
            raise refusal("PLANE_BUDGET" if session._core.remote else "OUT_OF_MEMORY", text)
        try:
            return {
                name: session.zeros((self._rows, *plane.shape), plane.dtype, device, f"record {name}")
                for name, plane in self._planes.items()
            }
        except EagleError as error:
            raise refusal(error.reason, f"{text} ({error})") from None

    def start(self) -> None:
        """Opens the files, with the state as it is. They appear once there are rows of steps, or at the end."""
        for name, path in (self._paths or {}).items():
            try:
                self._files[name] = _RowFile(path, self._planes[name])
            except OSError as error:
                raise refusal(
                    "BAD_VALUE", f"{self._where}: record_to: cannot write {os.fspath(path)!r}: {error.strerror}"
                ) from error
            self._files[name].append(self._planes[name], 1)

    def drain(self) -> None:
        """Writes a full set of rows."""
        self._write(self._rows)

    def _write(self, rows: int) -> None:
        for name, file in self._files.items():
            file.append(self.arrays[name][:rows], rows)
            file.appear()
        self._drained += rows

    def finish(self, records: int) -> tuple[dict[str, Array], int]:
        """The recorded rows by name, and how many there are; ``records``: that the run made."""
        if self._paths is None:
            return {name: array[:records] for name, array in self.arrays.items()}, records
        if records > self._drained:
            self._write(records - self._drained)
        self.close(keep=True)
        return {name: np.load(path, mmap_mode="r") for name, path in self._paths.items()}, 1 + records

    def close(self, keep: bool) -> None:
        """Closes the files. ``keep``: also those that hold nothing but the start."""
        for file in self._files.values():
            if keep:
                file.appear()
            file.close()
        self._files = {}


def recorded_names(where: str, model: Model, record: Any) -> list[str]:
    """The planes that ``record`` names: all state, one name, or a list of names."""
    if record is None or record is False:
        return []
    if record is True:
        names = [name for name in model.states() if name != model.mask]
    elif isinstance(record, str):
        names = [record]
    elif isinstance(record, Iterable):
        names = list(record)
    else:
        raise refusal(
            "WRONG_TYPE",
            f"{where}: record: expected True, a name or a list of names, found {type(record).__name__}",
        )
    for name in names:
        if not isinstance(name, str):
            raise refusal("WRONG_TYPE", f"{where}: record: expected names of planes, found {type(name).__name__}")
        if name not in model.planes:
            raise refusal(
                "BAD_VALUE",
                f"{where}: record: the model has no plane {name!r}; its planes are "
                + ", ".join(map(repr, model.planes)),
            )
    return list(dict.fromkeys(names))


def _paths(where: str, names: list[str], to: Any) -> dict[str, Path]:
    if isinstance(to, dict):
        missing = [name for name in names if name not in to]
        if missing:
            raise refusal("BAD_VALUE", f"{where}: record_to: no path for '{missing[0]}'; give one for each plane")
        return _apart(where, {name: _path(where, to[name]) for name in names})
    path = _path(where, to)
    if "{name}" in str(path):
        return _apart(where, {name: type(path)(str(path).replace("{name}", name)) for name in names})
    if len(names) != 1:
        raise refusal(
            "BAD_VALUE",
            f"{where}: record_to: {len(names)} planes do not go into one file; write {{name}} in the path, or give a "
            "dict of paths by name",
        )
    return {names[0]: path}


def _path(where: str, to: Any) -> Path:
    if not isinstance(to, (str, bytes, os.PathLike)):
        raise refusal("WRONG_TYPE", f"{where}: record_to: expected a path, found {type(to).__name__}")
    from pathlib import Path  # takes its time, and most programs record to no file

    return Path(os.fsdecode(to))


def _apart(where: str, paths: dict[str, Path]) -> dict[str, Path]:
    """The paths, each of a file of its own."""
    owner: dict[str, str] = {}
    for name, path in paths.items():
        first = owner.setdefault(os.path.realpath(path), name)
        if first != name:
            raise refusal(
                "BAD_VALUE",
                f"{where}: record_to: '{first}' and '{name}' would go into one file, {os.fspath(path)!r}; give each "
                "its own",
            )
    return paths


def _header(plane: Array, rows: int) -> bytes:
    """The head of a .npy file (version 1.0), of one size whatever the number of rows."""
    order = f"{{'descr': {plane.dtype.str!r}, 'fortran_order': False, 'shape': {(rows, *plane.shape)!r}, }}"
    body = order.encode("latin-1").ljust(_HEADER_BYTES - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def _most_bytes(session: Session) -> int:
    """What the session's budget leaves, or else what the machine has."""
    info = session.info()
    if info.plane_budget_bytes:
        return info.plane_budget_bytes - info.plane_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
