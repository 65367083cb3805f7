"""Another user who knows the ids of all that somebody holds: every call there is, with each of them, finds nothing.

The daemon, the owner and the stranger run as three users that are not root. Which calls there are is read from the
daemon's own reflection, so that a call that is added without a row in foreign_ids.py fails here.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from foreign_ids import UNHARMED, Ids
from users import BOB, Client

# What may be said of something that is not there. Graphs.Cancel and Planes.Retain answer whatever they are asked:
# an id that is not in flight may have ended just now, and what is not there need not be kept. Admin lists what the
# caller may see.
NOTHING = {"Graphs.Cancel", "Planes.Retain", "Admin.ListPlanes"}
NOT_THERE = re.compile(r"\bno (plane|graph|run|published array)\b")
# A session is gone on with by its secret alone: over TCP by this, else on the side connection (`resumes`). Pardons are
# for admins, and name what a graph holds and not whose it is.
ELSEWHERE = {"Sessions.Attach", "Admin.Pardon"}


@pytest.fixture
def outcomes(clients: tuple[Client, Client], users_endpoint: str) -> dict[str, Any]:
    """What a stranger hears about ids of the owner's, and about ids of nothing; and how the owner then goes on."""
    owner, stranger = clients
    path = repr(users_endpoint.removeprefix("unix:"))
    ids = owner.do(f"import foreign_ids\nowner = foreign_ids.Owner({path})\nsaid = owner.told()")
    never = vars(Ids(**ids).of_nothing())
    stranger.do(f"import foreign_ids\nstranger = foreign_ids.Stranger({path})")
    result = {
        "methods": stranger.do("said = stranger.methods()"),
        "nameless": stranger.do("said = stranger.nameless()"),
        "seen": stranger.do("said = stranger.seen()"),
        "resumed": [stranger.do(f"said = stranger.resumes({each['session']})") for each in (ids, never)],
        "theirs": stranger.do(f"said = stranger.outcomes({ids!r})"),
    }
    stranger.do("stranger.close()")  # Retain has taken what was its own
    stranger.do(f"stranger = foreign_ids.Stranger({path})")
    result["nothing"] = stranger.do(f"said = stranger.outcomes({never!r})")
    result["owner"] = owner.do("said = owner.finish()")
    result["ids"] = ids
    stranger.do("stranger.close()")
    return result


def test_ids_of_somebody_else_read_like_ids_of_nothing(outcomes: dict[str, Any]) -> None:
    tried = {method for method, *_ in outcomes["theirs"]}
    untold = set(outcomes["methods"]) - tried - set(outcomes["nameless"]) - ELSEWHERE
    assert not untold, f"calls that name something, and have no row in foreign_ids.py: {sorted(untold)}"
    assert len(outcomes["theirs"]) == len(outcomes["nothing"])
    for theirs, nothing in zip(outcomes["theirs"], outcomes["nothing"], strict=True):
        assert theirs[2:] == nothing[2:], f"{theirs[0]} ({theirs[1]}) tells one from the other"
        method, what, code, said = theirs
        if method in NOTHING:
            assert (code, said) == ("OK", ""), f"{method} ({what})"
        else:
            assert code in ("NOT_FOUND", "INVALID_ARGUMENT"), f"{method} ({what}): {code} {said}"
            assert NOT_THERE.search(said), f"{method} ({what}): {code} {said}"

    ids, seen = outcomes["ids"], outcomes["seen"]
    assert seen["planes"] == 4, "two, and two of its run"
    assert not {ids["run"], ids["ended_run"]} & set(seen["runs"])
    assert ids["session"] not in seen["sessions of graphs"] + seen["sessions of planes"]
    assert seen["principals"] == [f"uid:{BOB}"]
    assert outcomes["resumed"][0] == outcomes["resumed"][1]
    assert outcomes["resumed"][0][1] == "UNAUTHENTICATED"
    assert outcomes["owner"] == UNHARMED
