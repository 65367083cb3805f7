"""Forged secrets and tokens, ids of somebody else, other versions of the protocol: refused, named, counted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import eagle
import grpc
import pytest
from foreign_ids import UNHARMED, Ids, Owner, Stranger
from harness import Daemon, SideConnection, decode, hello, nested, number, side_connection, side_error
from models import affine
from stubs import Service, session_at
from watch import check_serves


def refusals(service: Service) -> dict[str, int]:
    """By reason, as the daemon counts them."""
    text = service.call("Admin.Metrics").text
    return {reason: int(count) for reason, count in re.findall(r'eagled_refusals_total\{reason="(\w+)"\} (\d+)', text)}


def forged(secret: str) -> Iterator[str]:
    """Every byte of it changed by a bit, and what is no secret at all."""
    for at in range(0, len(secret), 2):
        yield secret[:at] + f"{int(secret[at : at + 2], 16) ^ 1:02x}" + secret[at + 2 :]
    yield from (secret[:-2], secret + "00", secret[:-1], "", "0" * len(secret), os.urandom(32).hex(), "zz" * 32)


@pytest.mark.survives("forged secrets of sessions: UNAUTHENTICATED and counted, and the sessions go on")
def test_forged_secrets(daemon: Daemon) -> None:
    with session_at(daemon.path) as service, eagle.connect(daemon.endpoint) as session:
        x = session.full(100, 2.0)
        before = refusals(service).get("UNAUTHENTICATED", 0)
        secret, tried = service.secret, 0
        for wrong in forged(secret):
            service.secret = wrong
            for method in ("Planes.List", "Graphs.List", "Admin.Info"):
                with pytest.raises(grpc.RpcError) as refused:
                    service.call(method)
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED, wrong
                assert secret[:16] not in refused.value.details()
                tried += 1
        service.secret = secret
        assert refusals(service)["UNAUTHENTICATED"] - before == tried
        eagle.plan(affine).bind(x=x, y=x, a=2.0, b=1.0).launch()
        assert x.tolist() == [5.0] * 100
    assert secret not in daemon.log()


def fetch(side: SideConnection, *tokens: bytes) -> bytes:
    side.send(nested(2, b"".join(nested(1, token) for token in tokens)))
    return side.receive()


@pytest.mark.survives("forged, foreign and spent tokens of planes: no descriptor comes, and the owner's token works")
def test_forged_tokens_of_planes(daemon: Daemon) -> None:
    with side_connection(daemon.path) as side, session_at(daemon.path) as service:
        side.send(hello(1, 1))
        owner = Service(service.channel, decode(decode(side.receive())[2][0])[4][0].hex())
        token = owner.call("Planes.Create", planes=[{"bytes": 4096}]).planes[0].token
        wrong = [bytes([*token[:at], token[at] ^ 1, *token[at + 1 :]]) for at in range(len(token))]
        wrong += [token[:-1], token + b"\0", b"", bytes(len(token)), os.urandom(32)]
        for each in wrong:
            assert side_error(fetch(side, each))[1] in ("UNKNOWN_PLANE", "BAD_TOKEN", "BAD_VALUE", "BAD_MESSAGE")
        with side_connection(daemon.path) as other:
            other.send(hello(1, 1))
            other.receive()
            foreign, made_up = (side_error(fetch(other, each)) for each in (token, os.urandom(32)))
            assert foreign == made_up, "a token of somebody else's reads like one that never was"
        assert side_error(fetch(side, token, os.urandom(32))), "all of them or none"
        assert decode(fetch(side, token)).keys() == {3}, "the owner's is as good as before"
        assert side_error(fetch(side, token)), "once"
    check_serves(daemon.endpoint)


@pytest.mark.survives("plane and graph ids of another session, in every call: not found, and the owner is unharmed")
def test_foreign_ids(daemon: Daemon) -> None:
    """Of one user; that another user gets nothing at all is shown in tests/integration/test_foreign_ids.py."""
    owner, stranger = Owner(str(daemon.path)), Stranger(str(daemon.path))
    # Names, runs and other sessions' graphs are the user's, and may be used by each of its sessions.
    of_the_user = re.compile(r"name|sealed|that |of its session|^session$|planes and graphs")
    tried = 0
    for method, what, request in stranger.requests(Ids(**owner.told())):
        if of_the_user.search(what) or method == "Graphs.Cancel":
            continue
        with pytest.raises(grpc.RpcError) as refused:
            stranger.service.send(method, request)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND, f"{method} ({what})"
        tried += 1
    assert tried > 30
    stranger.close()
    assert owner.finish() == UNHARMED
    check_serves(daemon.endpoint)


@pytest.mark.survives("protocol versions one apart: served in the common one; further apart: refused with both ranges")
def test_protocol_versions_apart(daemon: Daemon) -> None:
    for low, high in (
        (1, 1),
        (0, 1),
        (1, 2),
        (1, 1000),
    ):  # a client of the version before or after that speaks ours too
        with side_connection(daemon.path) as side:
            side.send(hello(low, high))
            assert decode(decode(side.receive())[2][0])[1] == [1]
    for low, high in ((2, 2), (2, 3), (1000, 1001), (0, 0), (7, 2), (2**32 - 1, 2**32 - 1)):
        with side_connection(daemon.path) as side:
            side.send(hello(low, high))
            _, reason, message = side_error(side.receive())
        assert reason == "PROTOCOL_MISMATCH"
        assert str(low) in message
        assert str(high) in message
    check_serves(daemon.endpoint)


@pytest.mark.survives("fields and values of a later version: taken where they may be left out, else refused by name")
def test_what_a_later_client_says(daemon: Daemon) -> None:
    later = nested(1000, b"from another time") + number(1001, 2**63)
    with session_at(daemon.path, nested(1, number(1, 1) + number(2, 2)), later, nested(4, b"telepathy")) as service:
        request = service.message("CreatePlanesRequest")(planes=[{"bytes": 4096}]).SerializeToString() + later
        (made,) = service.send("Planes.Create", request)
        ref = made.planes[0].ref.SerializeToString()
        unknown_dtype = nested(1, ref) + nested(2, number(3, 77) + number(4, 8) + nested(5, b"\1") + nested(6, b"\x08"))
        for method, bytes_ in (
            ("Planes.Fill", nested(1, unknown_dtype) + nested(2, bytes(8))),
            ("Graphs.Picture", number(1, 1) + number(2, 99)),
            ("Graphs.Build", nested(1, nested(4, nested(99, b"a new kind of stage")))),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                service.send(method, bytes_)
            assert refused.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND), method
            assert refused.value.details()
    check_serves(daemon.endpoint)
