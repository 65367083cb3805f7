"""A daemon and two clients of three users, none of them root: becoming them takes root, and tests skip without it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import EAGLED, HERE, PATIENCE_S, wait_until

DAEMON, ALICE, BOB, GROUP = 61001, 61002, 61003, 61000


def as_user(uid: int) -> list[str]:
    """Runs what follows as this user, where the user database knows the daemon's as `eagled`: clients believe a daemon
    that root, `eagled` or they themselves run, and no other.
    """
    known = Path("/etc/passwd").read_text() + f"eagled:x:{DAEMON}:{GROUP}::/nonexistent:/usr/sbin/nologin\n"
    script = 'printf %s "$1" > "$2"; chmod 644 "$2"; mount --bind "$2" /etc/passwd; rm "$2"; shift 2; exec "$@"'
    database = tempfile.mktemp(prefix="eagle-passwd-")  # gone before anybody else looks
    become = ["setpriv", f"--reuid={uid}", f"--regid={GROUP}", "--clear-groups"]
    return ["unshare", "--mount", "sh", "-ec", script, "sh", known, database, *become]


@pytest.fixture
def users_endpoint() -> Iterator[str]:
    """A daemon of a user of its own, whose socket the clients' group may use."""
    if os.geteuid() != 0:
        pytest.skip("becomes other users, which takes root")
    with tempfile.TemporaryDirectory(prefix="eagle-") as folder:
        os.chown(folder, DAEMON, GROUP)
        os.chmod(folder, 0o750)
        path = Path(folder) / "s"
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*as_user(DAEMON), EAGLED, "--listen", f"unix:{path}", "--cache-dir", ""],
                stdout=out,
                stderr=out,
                umask=0o007,
            )
        try:
            wait_until(path.exists, "the daemon's socket")
            yield f"unix:{path}"
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0, log.read_text()


class Client:
    """A Python process of this user with a session, which does what it is told a block at a time."""

    def __init__(self, uid: int, endpoint: str) -> None:
        self._process = subprocess.Popen(
            [*as_user(uid), sys.executable, HERE / "user_client.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.do(f"session = eagle.connect({endpoint!r})")

    def outcome(self, code: str) -> list[Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(textwrap.dedent(code).strip("\n") + "\ngo\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def do(self, code: str) -> Any:
        kind, said = self.outcome(code)
        assert kind == "ok", f"{kind}: {said}"
        return said

    def refused(self, code: str) -> str:
        kind, said = self.outcome(code)
        assert kind != "ok", f"{code} was not refused"
        return said

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


@pytest.fixture
def clients(users_endpoint: str) -> Iterator[tuple[Client, Client]]:
    with contextlib.ExitStack() as stack:
        both = []
        for uid in (ALICE, BOB):
            client = Client(uid, users_endpoint)
            stack.callback(client.close)
            both.append(client)
        yield both[0], both[1]
