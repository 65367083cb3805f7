"""Two users of one daemon: what one holds the other cannot reach, whatever it knows; and what was granted goes again.

The daemon and both clients run as three users that are not root. Needs root to become them, and skips where it is not.
"""

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

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users, which takes root")


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
def endpoint() -> Iterator[str]:
    """A daemon of a user of its own, whose socket the clients' group may use."""
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
def clients(endpoint: str) -> Iterator[tuple[Client, Client]]:
    with contextlib.ExitStack() as stack:
        both = []
        for uid in (ALICE, BOB):
            client = Client(uid, endpoint)
            stack.callback(client.close)
            both.append(client)
        yield both[0], both[1]


def test_names_that_were_not_granted_read_like_names_that_are_not_there(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do("""x = session.publish(session.full(100_000, 1.0), "x")""")
    there, nowhere = bob.refused('session.open("x")'), bob.refused('session.open("y")')
    assert there.replace("'x'", "'y'") == nowhere
    assert bob.refused(f'session.open("x", owner="uid:{ALICE}")') == there
    assert bob.refused('session.withdraw("x")').replace("'x'", "'y'") == bob.refused('session.withdraw("y")')
    assert bob.do("said = [plane.name for plane in session.planes()]") == []


def test_what_is_granted_for_reading_stays_that(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do(f"""x = session.publish(session.full(100_000, 1.0), "x", to=["uid:{BOB}"])""")
    bob.do('x = session.open("x")')
    assert bob.do("said = [float(x.sum()), bool(x.flags.writeable)]") == [100_000.0, False]
    alice.do("x[:] = 2.0")
    assert bob.do("said = float(x.sum())") == 200_000.0
    assert bob.do("said = affine(x, 3.0, 0.0)[:2].tolist()") == [6.0, 6.0]
    # Not by numpy, not by a kernel, not by mapping it again, and not by opening the file again.
    bob.refused("x.flags.writeable = True")
    said = bob.refused("eagle.plan(affine).bind(x=session.full(100_000, 1.0), a=1.0, b=0.0, y=x).launch()")
    assert "read-only" in said or "reading" in said
    assert (
        bob.do(
            """
        import mmap, os
        said = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            if "memfd:" not in target or os.fstat(int(fd)).st_uid == os.getuid():
                continue
            if os.fstat(int(fd)).st_size < 800_000:
                continue
            try:
                mmap.mmap(int(fd), 0, prot=mmap.PROT_WRITE)
                said.append("mapped for writing")
            except PermissionError:
                pass
            try:
                os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
                said.append("opened for writing")
            except PermissionError:
                pass
            said.append("tried")
        """
        ).count("tried")
        >= 1
    )
    found = bob.do("said = said if 'said' in dir() else None\nsaid = float(x.sum())")
    assert found == 200_000.0
    assert alice.do("said = float(x.sum())") == 200_000.0


def test_what_is_granted_for_writing_can_be_written(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do(f"""x = session.publish(session.full(100_000, 1.0), "x", mode="rw", to=["uid:{BOB}"])""")
    bob.do(
        """
        x = session.open("x")
        x[:] = 5.0
        affine(x, 1.0, 0.0)
        """
    )
    assert alice.do("said = float(x[7])") == 5.0


def test_a_grant_that_was_taken_back_gives_nothing_new(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do(f"""x = session.publish(session.full(100_000, 1.0), "x", mode="rw", to=["uid:{BOB}"])""")
    bob.do('x = session.open("x")\ng = eagle.plan(affine).bind(x=x, a=2.0, b=0.0)\ng.launch()')
    alice.do(f'session.withdraw("x", ["uid:{BOB}"])')
    assert "plane" in bob.refused("g.launch()")
    assert "plane" in bob.refused("eagle.plan(affine).bind(x=x, a=2.0, b=0.0).launch()")
    bob.refused('session.open("x")')
    # What was mapped is still seen; until the owner moves the bytes.
    assert bob.do("said = float(x[0])") == 1.0
    assert alice.do('said = session.open("x").tolist()[:1]') == [1.0]
    alice.do('session.withdraw("x", seal_off=True)')
    alice.do("x[:] = 7.0")
    assert bob.do("said = [float(x.min()), float(x.max())]") == [0.0, 0.0]
    bob.do("x[:] = 3.0")
    assert alice.do("said = affine(x, 1.0, 0.0)[:2].tolist()") == [7.0, 7.0]
    alice.refused('session.open("x")')


def test_names_go_with_the_session_that_made_them(clients: tuple[Client, Client], endpoint: str) -> None:
    alice, bob = clients
    alice.do(f"""x = session.publish(session.full(100_000, 1.0), "x", to=["uid:{BOB}"])""")
    bob.do('x = session.open("x")')
    alice.do("del x\nsession.close()")
    bob.refused('session.open("x")')
    assert bob.do("said = affine(x, 2.0, 0.0)[:1].tolist()") == [2.0], "who opened it keeps it"


def test_a_small_array_is_published_in_a_plane_of_its_own(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do(f"""
        neighbour = session.full(8, 42.0)
        x = session.publish(session.full(8, 1.0), "x", to=["uid:{BOB}"])
        x[0] = 9.0
    """)
    bob.do('x = session.open("x")')
    assert bob.do("said = x.tolist()") == [9.0] + [1.0] * 7
    # All that the descriptor shows is this array: no other value of the segment that it came from.
    assert (
        bob.do(
            """
        import ctypes
        page = np.ctypeslib.as_array((ctypes.c_double * 512).from_address(x.__array_interface__["data"][0]))
        said = bool((page == 42.0).any())
        """
        )
        is False
    )
