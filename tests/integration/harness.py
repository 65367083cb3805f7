"""What the integration tests share: a daemon of their own, C loops to compare with, waiting with a deadline."""

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("EAGLE_BUILD_DIR", ROOT / "build" / "release"))
EAGLED = BUILD / "bin" / "eagled"
EAGLECTL = BUILD / "bin" / "eaglectl"
HERE = Path(__file__).resolve().parent

# Long enough for a machine that is busy with other things; reaching it is a failure.
PATIENCE_S = 60.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition holds; fails with `what` when it does not within PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s in vain for {what}"
        pause.wait(0.02)


class Ctl:
    """eaglectl, of one daemon."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def text(self, *arguments: str) -> str:
        return eaglectl("--endpoint", self.endpoint, *arguments).stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(eaglectl("--endpoint", self.endpoint, "--json", *arguments).stdout)

    def ended(self, *arguments: str) -> tuple[int, str]:
        done = eaglectl("--endpoint", self.endpoint, *arguments, check=False)
        return done.returncode, done.stderr


class Beside:
    """A call in a thread of its own, whose result or error is had by `result`."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._outcome.append(self._call())
        except BaseException as error:
            self._outcome.append(error)

    def ended(self) -> bool:
        return bool(self._outcome)

    def result(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert self._outcome, "the call did not end"
        return self._outcome[0]


class Daemon:
    """An eagled of the test's own, on a socket in `folder`. `environment`: what its own has besides the test's.

    `listens`: it is told the socket; else a configuration file among its options says that.
    """

    def __init__(
        self, folder: Path, *options: str, environment: dict[str, str] | None = None, listens: bool = True
    ) -> None:
        self.path = folder / "eagled.sock"
        self.endpoint = f"unix:{self.path}"
        self.log_path = folder / "eagled.log"
        owner = os.pidfd_open(os.getpid())  # a test run that is killed leaves no daemon behind
        level = () if "--log-level" in options else ("--log-level", "info")
        listen = ("--listen", self.endpoint) if listens else ()
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [EAGLED, *listen, "--owner-fd", str(owner), *level, *options],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[owner],
            )
        os.close(owner)
        try:
            wait_until(self._answers, f"eagled to answer at {self.endpoint}\n{self.log()}")
            #: The process that computes; that of `process` is its keeper, unless there is none.
            self.pid = self.process.pid if "--no-keeper" in options else self._worker()
        except BaseException:
            self.stop()
            raise

    def _answers(self) -> bool:
        assert self.process.poll() is None, f"eagled ended with {self.process.returncode}:\n{self.log()}"
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.path)) == 0

    def _worker(self) -> int:
        wait_until(lambda: bool(children(self.process.pid)), f"the keeper to start a worker\n{self.log()}")
        return children(self.process.pid)[0]

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def info(self) -> dict[str, Any]:
        return json.loads(eaglectl("--endpoint", self.endpoint, "--json", "info").stdout)

    def stop(self) -> int:
        """Ends it as an operator would; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def new_token(subject: str) -> tuple[str, str]:
    """(token, line of a file of tokens) as eagled makes them."""
    said = subprocess.run([EAGLED, "--new-token", subject], capture_output=True, text=True, check=True).stdout
    token, row = (text.rpartition(": ")[2] for text in said.splitlines())
    return token, row


def tcp_endpoint(daemon: Daemon) -> str:
    """Of its one TCP listener, once it serves; before that its sockets take connections, and the log has no line."""
    pattern = r"serves .*?(dns:[^\s,\"]+)"
    wait_until(lambda: re.search(pattern, daemon.log()) is not None, f"the daemon to serve\n{daemon.log()}")
    found = re.search(pattern, daemon.log())
    assert found
    return found.group(1)


def eaglectl(*arguments: str, check: bool = True, patience_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([EAGLECTL, *arguments], capture_output=True, text=True, timeout=patience_s, check=False)
    if check:
        assert result.returncode == 0, result.stderr
    return result


def cpu_seconds(pid: int) -> float:
    """User and system time that the process has used, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def maps_llvm(pid: int | str) -> bool:
    return "libLLVM" in Path(f"/proc/{pid}/maps").read_text()


def children(pid: int) -> list[int]:
    """Processes that this process started and that still run."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        found.extend(int(child) for child in tasks.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    return [pid, *(below for child in children(pid) for below in descendants(child))]


def python_script(
    script: Path, *arguments: str, environment: dict[str, str], stdin: int = subprocess.DEVNULL, **options: Any
) -> subprocess.Popen[str]:
    """A Python process of the environment that the tests run in, with the package installed there."""
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        env={**os.environ, **environment},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def compile_c(folder: Path, name: str, source: str) -> ctypes.CDLL:
    """A shared library of plain C, without contraction: the numbers that kernels must give, bit for bit."""
    file, library = folder / f"{name}.c", folder / f"{name}.so"
    file.write_text(source)
    compile_shared(file, library, "-O2", "-ffp-contract=off", "-Wno-unused-variable")
    return ctypes.CDLL(str(library))


def compile_shared(source: Path, library: Path, *flags: str) -> None:
    command = ["cc", "-Wall", "-Wextra", "-Werror", *flags, "-shared", "-fPIC", "-o", library, source, "-ldl"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# ---- the side connection by hand: proto/eagle/v1/service.proto


class SideConnection:
    """Frames of a little-endian uint32 size and a message, after eight magic bytes."""

    MAGIC = b"EAGLESC1"

    def __init__(self, path: Path, magic: bytes = MAGIC) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.socket.sendall(magic)

    def send(self, message: bytes) -> None:
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def receive(self) -> bytes:
        (size,) = struct.unpack("<I", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError(f"the daemon hung up after {len(data)} of {size} bytes")
            data += part
        return data

    def hung_up(self) -> bool:
        """Reads whatever still comes; true when the daemon closed the connection in the end."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def side_connection(path: Path, magic: bytes = SideConnection.MAGIC) -> Iterator[SideConnection]:
    connection = SideConnection(path, magic)
    try:
        yield connection
    finally:
        connection.close()


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def number(field: int, value: int) -> bytes:
    """A protobuf field of an integer type."""
    return varint(field << 3) + varint(value)


def nested(field: int, content: bytes) -> bytes:
    """A protobuf field of a message, bytes or string type."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def hello(low: int, high: int) -> bytes:
    """SideRequest{hello: {protocol: {min, max}, client_name: "test"}}"""
    return nested(1, nested(1, number(1, low) + number(2, high)) + nested(3, b"test"))


def decode(message: bytes) -> dict[int, list[Any]]:
    """Fields of a protobuf message by number: integers, and bytes for all that has a length."""
    fields: dict[int, list[Any]] = {}
    at = 0

    def read_varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = read_varint()
        value: Any = read_varint()
        if key & 7 == 2:
            at += value
            value = message[at - value : at]
        else:
            assert key & 7 == 0, f"wire type {key & 7} in {message!r}"
        fields.setdefault(key >> 3, []).append(value)
    return fields


def side_error(reply: bytes) -> tuple[int, str, str]:
    """(code, reason, message) of a SideReply that is an error."""
    fields = decode(reply)
    assert list(fields) == [1], f"expected an error, found {fields}"
    error = decode(fields[1][0])
    return error[1][0], error[2][0].decode(), error[3][0].decode()
