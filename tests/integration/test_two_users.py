"""Two users of one daemon: what one holds the other cannot reach, whatever it knows; and what was granted goes again.

The daemon and both clients run as three users that are not root.
"""

from harness import wait_until
from users import ALICE, BOB, Client


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


def test_names_go_with_the_session_that_made_them(clients: tuple[Client, Client]) -> None:
    alice, bob = clients
    alice.do(f"""x = session.publish(session.full(100_000, 1.0), "x", to=["uid:{BOB}"])""")
    bob.do('x = session.open("x")')
    alice.do("del x\nsession.close()")
    wait_until(lambda: bob.outcome('session.open("x")')[0] != "ok", "the daemon to hear of the session's end")
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
