"""Sessions over TCP: where they are served, who may come in, how values travel, and what becomes of a broken line."""

import contextlib
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import eagle
import numpy as np
import pytest
from eagle import Mutable, Param, Scalar, Terminated
from harness import EAGLED, PATIENCE_S, Daemon, new_token, tcp_endpoint, wait_until
from line import Line
from pki import Authority

LOCAL = ("--listen", "dns:127.0.0.1:0")


@eagle.kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y  # noqa: RET504 (it names the plane)


@eagle.kernel
def grow(x: Mutable[Scalar], rate: Param, done: Terminated):
    x = x * rate
    done = x > 100.0


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Daemon]:
    daemon = Daemon(folder, *options)
    try:
        wait_until(lambda: " serves " in daemon.log(), "eagled to say where it serves")
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log()


@pytest.fixture
def tcp(short_path: Path) -> Iterator[Daemon]:
    with serving(short_path, *LOCAL) as daemon:
        yield daemon


@pytest.fixture
def session(tcp: Daemon) -> Iterator[eagle.Session]:
    with eagle.connect(tcp_endpoint(tcp)) as opened:
        yield opened


@pytest.fixture
def line(tcp: Daemon) -> Iterator[Line]:
    made = Line(tcp_endpoint(tcp))
    try:
        yield made
    finally:
        made.close()


# ---- arrays


def test_values_travel_both_ways_whole_and_in_part(session: eagle.Session) -> None:
    x = session.zeros((3, 4))
    assert isinstance(x, eagle.Plane)
    assert x.transport == "copy"
    assert "unix" in x.transport_why
    expected = np.zeros((3, 4))
    x[...] = expected[...] = np.arange(12.0).reshape(3, 4)
    x[1, 1:3] = expected[1, 1:3] = [50.0, 60.0]
    x[:, 0] = expected[:, 0] = -1.0
    x[::2, ::-1] = expected[::2, ::-1] = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(np.asarray(x.T[1:]), expected.T[1:])
    np.testing.assert_array_equal(x.reshape(4, 3)[2].numpy(), expected.reshape(4, 3)[2])
    assert float(x[1, 1]) == 50.0
    assert x[0].tolist() == expected[0].tolist()
    np.testing.assert_array_equal(session.asarray(expected[1]).numpy(), expected[1])
    np.testing.assert_array_equal(session.full(5, 7, dtype="int32").numpy(), np.full(5, 7, np.int32))
    assert session.transport == "copy + grpc"


def test_arithmetic_is_refused_and_names_the_way_out(session: eagle.Session) -> None:
    x = session.full(3, 1.5)
    for operation in (
        lambda: x + 1,
        lambda: np.ones(3) * x,
        lambda: -x,
        lambda: x == 1.5,
        lambda: np.sin(x),
        lambda: list(x),
    ):
        with pytest.raises(TypeError, match=r"numpy|ufunc"):
            operation()
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        x + x


def test_kernels_runs_and_results_are_handles(session: eagle.Session) -> None:
    y = affine(session.asarray([0.0, 1.0, 2.0]), 2.0, 1.0)
    assert isinstance(y, eagle.Plane)
    assert y.tolist() == [1.0, 3.0, 5.0]
    x, done = session.asarray([1.0, 30.0]), session.zeros(2, dtype=bool)
    result = eagle.simulate(grow, max_steps=50, x=x, rate=2.0, done=done)
    assert (result.status, result.x.tolist(), done.tolist()) == ("finished", [128.0, 120.0], [True, True])


def test_edges_see_slices(session: eagle.Session) -> None:
    x, y, z = session.full(8, 1.0), session.zeros(8), session.zeros(4)
    g = eagle.Graph(session)
    g.add(eagle.plan(affine).bind(x=x[:4], a=2.0, b=0.0, y=y[:4]), name="low")
    g.add(eagle.plan(affine).bind(x=x[4:], a=3.0, b=0.0, y=y[4:]), name="high")
    g.add(eagle.plan(affine).bind(x=y[:4], a=10.0, b=0.0, y=z), name="after low")
    g.build().launch()
    assert y.tolist() == [2.0] * 4 + [3.0] * 4
    assert z.tolist() == [20.0] * 4
    assert {(edge.src, edge.dst) for edge in g.edges()} == {(0, 2)}


def test_callables_get_their_arrays_by_name(session: eagle.Session) -> None:
    x, y = session.asarray([1.0, 2.0, 3.0]), session.zeros(3)

    def reverse(source: np.ndarray, target: np.ndarray) -> None:
        assert type(source) is np.ndarray
        assert not source.flags.writeable
        target[...] = source[::-1]

    g = eagle.Graph(session)
    g.add(eagle.plan(affine).bind(x=x, a=1.0, b=1.0, y=y))
    z = session.zeros(3)
    g.add_node(eagle.graph.opaque(reverse, reads={"source": y}, writes={"target": z[:]}, name="reverse"))
    w = session.zeros(3)
    g.add(eagle.plan(affine).bind(x=z, a=2.0, b=0.0, y=w))
    g.build().launch()
    assert w.tolist() == [8.0, 6.0, 4.0]


def test_an_array_that_is_opened_again_is_the_same_to_callables(session: eagle.Session) -> None:
    x = session.publish(session.full(4, 1.5), "shared")
    y = session.open("shared")
    seen: list[list[float]] = []

    def double(values: np.ndarray) -> None:
        seen.append(values.tolist())
        values[...] *= 2

    g = eagle.Graph(session)
    g.add_node(eagle.graph.opaque(double, writes={"values": y}, name="double")).build().launch(2)
    assert seen == [[1.5] * 4, [3.0] * 4]
    assert x.numpy().tolist() == y.numpy().tolist() == [6.0] * 4


def test_a_timeout_ends_a_launch_in_the_transfers_of_its_callable(session: eagle.Session) -> None:
    x = session.zeros(4_000_000)
    late = threading.Event()
    g = eagle.Graph(session)
    g.add_node(eagle.graph.opaque(lambda values: late.wait(0.2), writes={"values": x}, name="late")).build()
    with pytest.raises(eagle.DeadlineExceeded, match="timeout"):
        g.launch(3, timeout=0.1)
    assert session.info().graphs == 1, "the session is as good as before"


def test_a_large_transfer_tells_its_progress_and_stops_on_request(session: eagle.Session) -> None:
    n = 10_000_000  # 80 MB: over every bound on one message
    values = np.random.default_rng(7).random(n)
    x = session.zeros(n)
    told: list[tuple[int, int]] = []
    x.send(values, progress=lambda done, all_bytes: told.append((done, all_bytes)))
    assert told[-1] == (8 * n, 8 * n)
    assert told == sorted(told)
    assert len(told) > 10
    np.testing.assert_array_equal(x.numpy(), values)
    with pytest.raises(eagle.EagleError, match="stopped"):
        x.numpy(progress=lambda done, _: done < 4 * n)
    with pytest.raises(ZeroDivisionError):
        x.numpy(progress=lambda done, _: 1 // 0)
    assert float(x[-1]) == values[-1], "the session is as good as before"


def test_who_does_not_read_holds_nobody_up(session: eagle.Session, tcp: Daemon) -> None:
    x = session.full(4_000_000, 1.0)

    def look(done: int, all_bytes: int) -> None:
        if done < all_bytes // 2 or worked:
            return
        # This transfer waits meanwhile; another client, and this one too, are served.
        with eagle.connect(tcp_endpoint(tcp)) as other:
            worked.append(affine(other.full(3, 2.0), 2.0, 0.0).tolist())
        worked.append(affine(session.full(3, 3.0), 2.0, 0.0).tolist())

    worked: list[list[float]] = []
    x.numpy(progress=look)
    assert worked == [[4.0] * 3, [6.0] * 3]


# ---- lines that break


def test_a_session_and_its_transfers_survive_a_broken_line(tcp: Daemon, line: Line) -> None:
    with eagle.connect(line.endpoint, lease=PATIENCE_S, timeout=PATIENCE_S) as session:
        values = np.arange(8_000_000.0)
        x = session.zeros(values.size)
        cuts = [0.5, 0.2]

        def cut(done: int, all_bytes: int) -> None:
            if cuts and done >= cuts[-1] * all_bytes:
                cuts.pop()
                line.cut()

        x.send(values, progress=cut)
        assert not cuts
        cuts += [0.5, 0.2]
        np.testing.assert_array_equal(x.numpy(progress=cut), values)
        assert not cuts
        assert affine(x[:2], 2.0, 1.0).tolist() == [1.0, 3.0]
    wait_until(lambda: tcp.info()["sessions"] == 1, "the closed session to go")  # the one that asks


def test_a_session_is_taken_over_from_a_line_that_only_looks_alive(tcp: Daemon, line: Line) -> None:
    with eagle.connect(line.endpoint, timeout=PATIENCE_S) as session:
        x = session.full(3, 2.0)

        def computes() -> bool:
            # A call that was on its way when the line broke says so, and the next one waits.
            with contextlib.suppress(ConnectionError):
                return affine(x, 2.0, 1.0).tolist() == [5.0] * 3
            return False

        for _ in range(3):
            line.cut(unseen_by_the_daemon=True)
            wait_until(computes, "the session to go on")
        assert tcp.info()["sessions"] == 2
    wait_until(lambda: tcp.info()["sessions"] == 1, "the session to go when it is closed")


def test_a_session_whose_line_stays_broken_ends_with_its_lease(tcp: Daemon, line: Line) -> None:
    session = eagle.connect(line.endpoint, lease=0.2, timeout=10.0)
    x = session.full(1000, 1.0)
    assert x.size == 1000
    assert tcp.info()["sessions"] == 2
    assert tcp.info()["planes"] == 1
    line.cut(for_good=True)
    wait_until(lambda: tcp.info()["sessions"] == 1, "the session to end")
    wait_until(lambda: tcp.info()["planes"] == 0, "its planes to go")
    with pytest.raises((ConnectionError, TimeoutError, eagle.EagleError)):
        session.zeros(3)


def test_closing_ends_a_session_at_once(tcp: Daemon) -> None:
    session = eagle.connect(tcp_endpoint(tcp), lease=3600.0)
    session.full(10, 1.0)
    session.close()
    wait_until(lambda: tcp.info()["sessions"] == 1, "the closed session to go, long before its lease is over")


def test_silence_garbage_and_half_frames_cost_the_others_nothing(tcp: Daemon) -> None:
    host, _, port = tcp_endpoint(tcp).removeprefix("dns:").rpartition(":")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    settings = b"\0\0\0\4\0\0\0\0\0"
    sent = [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
        b"EAGLESC1",
        preface[:7],
        preface,
        preface + settings,
    ]
    sent += [preface + settings + b"\0\0\x20\1\4\0\0\0\1"[:cut] for cut in range(1, 10)]
    sent += [preface + settings + b"\xff\xff\xff\1\4\0\0\0\1" + b"x" * 100]
    half_open = []
    for data in sent * 4:
        end = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        end.sendall(data)
        half_open.append(end)
    with eagle.connect(tcp_endpoint(tcp)) as session:
        assert affine(session.full(2, 1.0), 2.0, 0.0).tolist() == [2.0, 2.0]
    # Who has not finished its greeting is hung up on.
    with contextlib.suppress(ConnectionResetError):
        while half_open[0].recv(4096):
            pass
    for end in half_open:
        end.close()


# ---- who may come in


class Pki:
    def __init__(self, folder: Path) -> None:
        self.ours = Authority(folder / "ours", "our CA")
        self.theirs = Authority(folder / "theirs", "their CA")
        self.server = self.ours.sign("server", hosts="DNS:localhost,IP:127.0.0.1")
        self.stale = self.ours.sign("stale", hosts="DNS:localhost,IP:127.0.0.1", expired=True)
        self.alice = self.ours.sign("alice")
        self.bob = self.ours.sign("bob")
        self.stale_alice = self.ours.sign("stale-alice", expired=True)
        self.mallory = self.theirs.sign("alice")

    def tls(self, client: tuple[Path, Path] | None = None) -> object:
        return self.ours.ca if client is None else (self.ours.ca, *client)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


def refused(connect: Callable[[], eagle.Session], *words: str) -> None:
    with pytest.raises((PermissionError, ConnectionError)) as raised:
        connect().close()
    for word in words:
        assert word in str(raised.value)


def test_tls_believes_the_right_ca_alone(short_path: Path, pki: Pki) -> None:
    with serving(short_path, *LOCAL, "--tls-cert", str(pki.server[0]), "--tls-key", str(pki.server[1])) as daemon:
        endpoint = tcp_endpoint(daemon)
        with eagle.connect(endpoint, tls=pki.tls()) as session:
            assert affine(session.full(2, 1.0), 2.0, 0.0).tolist() == [2.0, 2.0]
        refused(lambda: eagle.connect(endpoint, tls=pki.theirs.ca), "tls=", endpoint)
        refused(lambda: eagle.connect(endpoint), endpoint)
        other_name = endpoint.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(ConnectionError):
            eagle.connect(other_name, tls=pki.tls())


def test_client_certificates_say_who_calls(short_path: Path, pki: Pki) -> None:
    options = ("--tls-cert", str(pki.server[0]), "--tls-key", str(pki.server[1]), "--tls-client-ca", str(pki.ours.ca))
    with serving(short_path, *LOCAL, *options) as daemon:
        endpoint = tcp_endpoint(daemon)
        with (
            eagle.connect(endpoint, tls=pki.tls(pki.alice)) as alice,
            eagle.connect(endpoint, tls=pki.tls(pki.bob)) as bob,
        ):
            x = alice.publish(alice.full(3, 1.0), "x", to=["certificate:bob"])
            seen = bob.open("x")
            assert seen.tolist() == [1.0] * 3
            assert seen.read_only
            assert not x.read_only
            alice.publish(alice.full(3, 2.0), "mine")
            with pytest.raises(eagle.EagleError) as there:
                bob.open("mine")
            with pytest.raises(eagle.EagleError) as nowhere:
                bob.open("nowhere")
            assert str(there.value).replace("mine", "nowhere") == str(nowhere.value)
        refused(lambda: eagle.connect(endpoint, tls=pki.tls()), endpoint)
        refused(lambda: eagle.connect(endpoint, tls=pki.tls(pki.stale_alice)), endpoint)
        refused(lambda: eagle.connect(endpoint, tls=pki.tls(pki.mallory)), endpoint)
        with eagle.connect(endpoint, tls=pki.tls(pki.alice)) as again:
            assert again.full(2, 1.0).tolist() == [1.0, 1.0]


def test_tokens_are_compared_reloaded_and_never_logged(short_path: Path) -> None:
    (alice, alice_row), (bob, bob_row) = new_token("alice"), new_token("bob")
    file = short_path / "tokens"
    file.write_text(f"# who may come in\n{alice_row}\n{bob_row}\n")
    file.chmod(0o600)
    with serving(short_path, *LOCAL, "--tokens", str(file)) as daemon:
        endpoint = tcp_endpoint(daemon)
        with eagle.connect(endpoint, auth=alice) as session:
            assert session.full(2, 1.0).tolist() == [1.0, 1.0]
            refused(lambda: eagle.connect(endpoint), "token")
            for wrong in (alice[:-1], alice + "0", alice.upper(), "0" * 64, "short", alice_row.split()[0]):
                refused(lambda wrong=wrong: eagle.connect(endpoint, auth=wrong), "token")
            file.write_text(f"{alice_row}\n")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "the configuration holds: 0 tenants, 1 tokens" in daemon.log(), "new tokens to hold")
            refused(lambda: eagle.connect(endpoint, auth=bob), "token")
            assert session.full(2, 2.0).tolist() == [2.0, 2.0]
            file.write_text("not a line\n")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "the configuration stays as it was" in daemon.log(), "a bad file to be refused")
        with eagle.connect(endpoint, auth=alice) as session:
            assert session.full(2, 1.0).tolist() == [1.0, 1.0]
        log = daemon.log()
        assert "token:alice" in log
        assert alice not in log
        assert bob not in log
        assert alice_row.split()[0] not in log


def test_a_token_does_not_travel_in_the_clear() -> None:
    with pytest.raises(ValueError, match="in the clear"):
        eagle.connect("dns:192.0.2.1:7411", auth="0" * 64, timeout=1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "dns:0.0.0.0:0"), ("no TLS", "--tls-cert", "localhost")),
        (("--listen", "dns:0.0.0.0:0", "TLS"), ("who they are", "--tokens")),
        (("--listen", "dns:127.0.0.1:0", "--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"), ("/nowhere.pem",)),
        (("--listen", "dns:127.0.0.1:0", "STALE"), ("expired",)),
        (("--listen", "dns:127.0.0.1:0", "MIXED"), ("private key",)),
        (("--listen", "dns:127.0.0.1:0", "--tokens", "/nowhere"), ("/nowhere",)),
        (("--listen", "dns:localhost"), ("port",)),
        (("--listen", "dns::7411"), ("host",)),
        (("--listen", "dns:no.such.host.invalid:7411"), ("no.such.host.invalid",)),
    ],
)
def test_what_is_not_safe_does_not_start(
    short_path: Path, pki: Pki, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    files = {
        "TLS": ("--tls-cert", str(pki.server[0]), "--tls-key", str(pki.server[1])),
        "STALE": ("--tls-cert", str(pki.stale[0]), "--tls-key", str(pki.stale[1])),
        "MIXED": ("--tls-cert", str(pki.server[0]), "--tls-key", str(pki.alice[1])),
    }
    said = [word for option in options for word in files.get(option, (option,))]
    ended = subprocess.run(
        [EAGLED, "--listen", f"unix:{short_path}/s", *said],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode != 0
    for word in words:
        assert word in ended.stderr


def test_danger_that_is_wanted_is_warned_of(short_path: Path) -> None:
    with serving(short_path, "--listen", "dns:0.0.0.0:0", "--insecure-i-know") as daemon:
        wait_until(lambda: "--insecure-i-know: " in daemon.log(), "the warning")
        endpoint = tcp_endpoint(daemon).replace("0.0.0.0", "127.0.0.1")
        with eagle.connect(endpoint) as session:
            assert session.full(2, 1.0).tolist() == [1.0, 1.0]


def test_a_unix_listener_may_ask_for_tokens_too(short_path: Path) -> None:
    token, row = new_token("alice")
    tokens, config = short_path / "tokens", short_path / "eagled.toml"
    tokens.write_text(row + "\n")
    tokens.chmod(0o600)
    config.write_text(
        f'[[listen]]\nendpoint = "unix:{short_path}/other.sock"\nidentity = "token"\n[tokens]\nfile = "{tokens}"\n'
    )
    process = subprocess.Popen([EAGLED, "--config", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        endpoint = f"unix:{short_path}/other.sock"
        wait_until((short_path / "other.sock").exists, "the socket")
        refused(lambda: eagle.connect(endpoint), "token")
        with eagle.connect(endpoint, auth=token) as session:
            assert session.full(2, 1.0).tolist() == [1.0, 1.0]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        process.stderr.close()


def test_callables_of_a_loaded_graph_are_called_with_their_arrays(session):
    """Whole arrays, parts, and one that is read and written, as the nodes of the graph that was saved have them."""
    with eagle.local() as here:
        x, y, spare = here.zeros(6), here.zeros(6), here.zeros(2)
        g = eagle.Graph(here, name="called")
        g.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0), name="map")
        tail = y[2:5]
        g.add_node(eagle.graph.opaque(lambda: None, reads={"tail": tail}, writes={"tail": tail}), name="halve")
        g.add_node(eagle.graph.opaque(lambda: None, reads={"all": y}, writes={"ends": spare}), name="look")
        saved = bytes(eagle.GraphFile.of(g))
    seen = []

    def halve(tail):
        tail /= 2.0

    def look(all, ends):
        assert not all.flags.writeable
        seen.append(all.tolist())
        ends[:] = all[0], all[-1]

    given = session.asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    loaded = eagle.Graph.load(saved, {"map.x": given}, {"halve": halve, "look": look}, session=session).build()
    loaded.launch()
    assert loaded.planes["y"].tolist() == [1.0, 3.0, 2.5, 3.5, 4.5, 11.0]
    assert seen == [[1.0, 3.0, 2.5, 3.5, 4.5, 11.0]]
    assert loaded.planes["ends"].tolist() == [1.0, 11.0]
    turned = session.zeros(12)[::2]  # an array with other strides takes the place of one that all see alike
    again = eagle.Graph.load(saved, {"ends": turned[:2]}, {"halve": halve, "look": look}, session=session).build()
    again.launch()
    assert turned.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_callable_of_a_loaded_graph_that_does_not_take_its_arrays_fails_by_name(session):
    with eagle.local() as here:
        x = here.zeros(4)
        g = eagle.Graph(here).add_node(eagle.graph.opaque(lambda: None, reads={"x": x}), name="look")
        g.add(eagle.plan(affine).bind(x=x, y=here.zeros(4), a=1.0, b=1.0), name="map")
        saved = bytes(eagle.GraphFile.of(g))
    loaded = eagle.Graph.load(saved, calls={"look": lambda: None}, session=session).build()
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        loaded.launch()
