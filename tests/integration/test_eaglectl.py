"""Every command of eaglectl, as a person or a program runs it: on a real daemon, with sessions of a real program."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import eagle
import numpy as np
import pytest
from harness import BUILD, EAGLECTL, PATIENCE_S, ROOT, Ctl, Daemon, eaglectl, tcp_endpoint, wait_until
from models import affine

WELL, REFUSED, USAGE, UNWELL = 0, 1, 2, 3


@pytest.fixture
def ctl(daemon: Daemon) -> Ctl:
    return Ctl(daemon.endpoint)


@pytest.fixture
def session(daemon: Daemon) -> Iterator[eagle.Session]:
    with eagle.connect(daemon.endpoint) as opened:
        yield opened


@pytest.fixture
def graph(session: eagle.Session) -> eagle.Graph:
    """Two launches of one kernel, the second over what the first wrote; launched three times."""
    x, y, z = session.full(64, 2.0, name="x"), session.zeros(64, name="y"), session.zeros(64, name="z")
    made = eagle.Graph(session, name="step")
    made.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0), name="first")
    made.add(eagle.plan(affine).bind(x=y, y=z, a=2.0, b=1.0), name="second")
    made.build()
    made.launch(3)
    assert z[0] == 11.0
    return made


# ---- a daemon and what it holds


def test_info_tells_of_the_daemon_and_its_tenants(daemon, ctl, graph):
    info = ctl.json("info")
    assert info["pid"] == daemon.pid
    assert info["endpoint"] == daemon.endpoint
    assert info["version"] == info["client_version"]
    assert info["launches"] == 3
    assert info["tenant"] == f"uid:{os.getuid()}"
    assert [tenant["name"] for tenant in info["tenants"]] == [info["tenant"]]
    assert info["tenants"][0]["graphs"] == 1
    text = ctl.text("info")
    assert re.search(rf"^your tenant +uid:{os.getuid()}$", text, re.MULTILINE)
    assert re.search(rf"^uid:{os.getuid()} +1 ", text, re.MULTILINE)


def test_info_in_python_names_the_tenants_too(session):
    info = session.info()
    assert info.tenant == f"uid:{os.getuid()}"
    assert [tenant.name for tenant in info.tenants] == [info.tenant]
    assert info.tenants[0].sessions >= 1
    before = info.tenants[0].planes
    arrays = [session.zeros(100_000) for _ in range(3)]  # each a plane of its own
    assert session.info().tenants[0].planes == before + len(arrays)
    with eagle.local() as local:
        assert local.info().tenant == ""
        assert local.info().tenants == ()


def test_sessions_are_listed_with_their_tenant(ctl, session, graph):
    found = [one for one in ctl.json("sessions") if one["pid"] == os.getpid()]
    assert len(found) == 1
    assert found[0]["tenant"] == f"uid:{os.getuid()}"
    assert found[0]["principal"] == f"uid:{os.getuid()}"
    assert found[0]["transport"] == "unix"
    assert found[0]["attached"]
    assert found[0]["graphs"] == 1
    assert found[0]["plane_bytes"] > 0
    assert str(os.getpid()) in ctl.text("sessions")


def test_planes_are_listed_by_session(ctl, session, graph):
    own = [one["session"] for one in ctl.json("sessions") if one["pid"] == os.getpid()]
    planes = ctl.json("planes")
    assert planes
    assert {plane["session"] for plane in planes} == set(own)
    assert all(plane["bytes"] > 0 and not plane["torn"] for plane in planes)
    assert "SESSION" in ctl.text("planes")


def test_top_prints_once_or_as_often_as_it_is_told(ctl, graph):
    once = ctl.text("top", "--once")
    assert "TENANT" in once
    assert "3 launches" in once
    assert "\x1b" not in once  # it can be piped
    looks = ctl.text("--json", "top", "--count", "2", "--interval", "0.05").splitlines()
    assert [json.loads(look)["info"]["launches"] for look in looks] == [3, 3]
    assert "0/s" in ctl.text("top", "--count", "2", "--interval", "0.05")


def test_top_redraws_a_terminal(ctl):
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [EAGLECTL, "--endpoint", ctl.endpoint, "top", "--count", "2", "--interval", "0.05"], stdout=slave, stderr=slave
    )
    os.close(slave)
    assert process.wait(PATIENCE_S) == WELL
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert shown.count(b"\x1b[2J") == 2


# ---- graphs


def test_graphs_are_listed_and_drawn(ctl, graph):
    (listed,) = ctl.json("graphs")
    assert listed["name"] == "step"
    assert (listed["nodes"], listed["launches"]) == (2, 3)
    assert listed["tenant"] == f"uid:{os.getuid()}"
    assert listed["id"] in ctl.text("graphs")
    assert "first" in ctl.text("show", "step")
    assert ctl.text("show", listed["id"], "--svg").startswith("<svg")
    assert "second" in ctl.json("show", "step", "--dot")["picture"]


def test_a_graph_is_shown_as_it_is_executed(ctl, graph):
    found = ctl.json("graph", "step")
    assert [node["label"] for node in found["nodes"]] == ["first", "second"]
    assert "over 64 samples" in found["nodes"][0]["kind"]
    assert {"source": 0, "destination": 1, "kind": "RAW", "plane": "y"} in found["edges"]
    assert len(found["schedule"]) == 2
    executed = [
        node["label"] for group in found["execution"]["groups"] for function in group["functions"] for node in function
    ]
    assert executed == ["first", "second"]
    assert found["execution"]["bytes"] > 0
    assert found["functions"][0]["code_bytes"] > 0
    text = ctl.text("graph", "step")
    for part in ("NODE", "EDGE", "execution: fusion full", "0 first", "moved a launch"):
        assert part in text


def test_explain_tells_the_report_and_the_reasons(ctl, graph):
    whole = ctl.text("explain", "step")
    assert "execution: fusion" in whole
    assert "waits for" in whole
    assert "bytes" in ctl.text("explain", "step", "second")
    pair = ctl.json("explain", "step", "first", "1")
    assert (pair["node"], pair["other"]) == (0, 1)
    assert "RAW" in pair["text"]
    assert len(ctl.json("explain", "step")["edges"]) == 1


def test_a_kernel_is_shown_as_verified_and_as_compiled(ctl, graph):
    found = ctl.json("kernel", "step")
    assert found["kernel"] == "affine"
    roles = {argument["name"]: argument["role"] for argument in found["arguments"]}
    assert roles["x"] == "read"
    assert roles["a"] == "param"
    assert "kernel @affine" in found["ir"]
    assert "ARGUMENT" in ctl.text("kernel", "step", "affine", "--roles")
    code = ctl.json("kernel", "step", "--asm", "--llvm")["functions"]
    assert code
    assert all("ret" in one["assembly"] and "fadd" in one["llvm"] for one in code)
    assert "ir" not in ctl.json("kernel", "step", "--roles")
    for_a_gpu = ctl.json("kernel", "step", "--ptx", "--arch", "sm_80")["functions"]
    assert all(".target sm_80" in one["ptx"] and "mul.rn.f64" in one["ptx"] for one in for_a_gpu)


# ---- graphs as files


@pytest.fixture(params=["keeper", "no keeper"])
def any_daemon(request, short_path) -> Iterator[Daemon]:
    """Descriptions are kept for another worker, and where there will be none."""
    daemon = Daemon(short_path, *(["--no-keeper"] if request.param == "no keeper" else []))
    yield daemon
    daemon.stop()


def test_a_graph_of_a_daemon_is_saved_and_computes_the_same_elsewhere(any_daemon, tmp_path):
    """What it is by now: other numbers, other planes. The bytes are those that its own program writes."""
    ctl, file = Ctl(any_daemon.endpoint), tmp_path / "step.eagle"
    values = np.random.default_rng(15).normal(size=(2, 64))
    with eagle.connect(any_daemon.endpoint) as session:
        x, other = session.asarray(values[0]), session.asarray(values[1])
        y, z = session.zeros(64), session.zeros(64)
        made = eagle.Graph(session, name="step")
        made.add(eagle.plan(affine).bind(x=x, y=y, a=0.1, b=1.0), name="first")
        made.add(eagle.plan(affine).bind(x=y, y=z, a=3.0, b=0.7), name="second")
        made.build()
        made.update({"first.a": 9.0})
        made.update({"first.a": 1.0 / 3.0, "second.b": -0.3})
        made.rebind({"first.x": other})
        said = ctl.json("graph", "save", "step", str(file))
        made.save(tmp_path / "own.eagle")
        made.launch()
        expected = z.copy()
    assert file.read_bytes() == (tmp_path / "own.eagle").read_bytes()
    assert (said["file"], said["bytes"], said["name"]) == (str(file), file.stat().st_size, "step")
    assert said["hash"] == eagle.GraphFile.read(file).hash
    assert [plane["name"] for plane in said["planes"]] == ["first.x", "first.y", "second.y"]
    with eagle.local() as session:
        loaded = eagle.Graph.load(file, {"first.x": session.asarray(values[1])}, session=session)
        loaded.build().launch()
        assert loaded.planes["second.y"].tobytes() == expected.tobytes()


def test_a_saved_graph_names_the_callables_that_it_needs(session, ctl, tmp_path):
    x = session.zeros(4)
    made = eagle.Graph(session, name="calls")
    made.add_node(eagle.graph.opaque(lambda: None, reads={"x": x}), name="look")
    made.add(eagle.plan(affine).bind(x=x, y=session.zeros(4), a=2.0, b=1.0), name="map")
    made.build()
    assert ctl.json("graph", "save", "calls", str(tmp_path / "calls.eagle"))["calls"] == ["look"]
    assert "not built: it calls 1 callable" in ctl.text("graph", "load", str(tmp_path / "calls.eagle"))


def test_a_graph_is_saved_whose_worker_has_died(session, graph, ctl, daemon, tmp_path):
    """It is not built for that: its description is enough."""
    graph.save(tmp_path / "own.eagle")
    os.kill(ctl.json("info")["pid"], signal.SIGKILL)
    wait_until(lambda: ctl.ended("health")[0] == WELL, "another worker")
    ctl.text("graph", "save", "step", str(tmp_path / "step.eagle"))
    assert (tmp_path / "step.eagle").read_bytes() == (tmp_path / "own.eagle").read_bytes()
    assert ctl.json("info")["worker_restarts"] == 1


def test_what_cannot_be_saved_is_refused_and_leaves_what_is_there(ctl, graph, tmp_path):
    there = tmp_path / "there"
    there.write_text("mine")
    file = tmp_path / "step.eagle"
    for words, code, part in (
        (("stpe", str(file)), REFUSED, "'step'"),
        (("step", str(there)), REFUSED, "name another file"),
        (("step", str(tmp_path / "no/folder")), REFUSED, "No such file"),
        (("step", str(tmp_path)), REFUSED, "name another file"),
        (("step",), USAGE, "graph save GRAPH FILE"),
        (("step", str(file), "more"), USAGE, "more"),
    ):
        ended, error = ctl.ended("graph", "save", *words)
        assert (ended, part in error) == (code, True), error
    assert ctl.ended("graph", "step", str(file))[0] == USAGE
    assert ctl.ended("graph", "load", str(file), str(file))[0] == USAGE
    assert there.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == [there]


def test_names_that_nobody_knows_are_answered_with_the_nearest(ctl, graph):
    for words, nearest in (
        (("show", "stpe"), "'step'"),
        (("explain", "step", "frist"), "0 'first'"),
        (("kernel", "step", "afine"), "0 'affine'"),
        (("graph", "stp"), "'step'"),
    ):
        code, error = ctl.ended(*words)
        assert (code, nearest in error) == (REFUSED, True), error
    for words, nearest in ((("grahps",), "'graphs'"), (("graphs", "--jsno"), "'--json'"), (("doctr",), "'doctor'")):
        code, error = ctl.ended(*words)
        assert (code, nearest in error) == (USAGE, True), error


# ---- operating


def test_health_is_well_while_the_daemon_serves(ctl):
    assert ctl.json("health") == {"service": "", "serving": True}
    assert "serving" in ctl.text("health")


def test_a_timeline_is_a_trace(ctl, graph, tmp_path):
    for words in (("timeline",), ("timeline", "step")):
        file = tmp_path / "trace.json"
        said = ctl.json(*words, "-o", str(file))
        assert said["file"] == str(file)
        assert json.loads(file.read_text())["traceEvents"]
        assert json.loads(ctl.text(*words))["traceEvents"]
    assert ctl.ended("timeline", "-o", str(tmp_path / "no/folder"))[0] == REFUSED


def test_the_log_is_read_and_its_level_set(daemon, ctl):
    assert ctl.json("log-level", "debug") == {"level": "debug", "previous": "info"}
    assert "was debug" in ctl.text("log-level", "info")
    assert ctl.ended("log-level", "loud")[0] == USAGE
    assert len(ctl.json("log", "--lines", "1")) == 1
    assert "serv" in ctl.text("log", "--lines", "0")


def test_metrics_are_prometheus_text(ctl, graph):
    assert "eagled_launches_total" in ctl.text("metrics")


def test_a_support_bundle_is_a_tar_file_of_ones_own(ctl, tmp_path):
    import tarfile

    file = tmp_path / "bundle.tar"
    said = ctl.json("support-bundle", str(file))
    assert said["bytes"] == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        assert archive.getnames()
    code, error = ctl.ended("support-bundle", str(file))
    assert (code, "remove it" in error) == (REFUSED, True)


def test_drain_ends_the_daemon(short_path):
    daemon = Daemon(short_path)
    try:
        assert Ctl(daemon.endpoint).json("drain", "--drain-timeout", "0") == {"jobs": 0}
        assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()
    finally:
        daemon.process.kill()
        daemon.process.wait()


# ---- doctor


def findings(*arguments: str, **environment: str) -> dict[str, dict[str, str]]:
    """By id, of a host without the usual endpoints."""
    done = subprocess.run(
        [EAGLECTL, "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "EAGLE_CACHE_DIR": "", **environment},
    )
    said = json.loads(done.stdout)
    assert done.returncode == (UNWELL if said["worst"] == "problem" else WELL)
    return {one["id"]: one for one in said["findings"]}


def test_doctor_finds_a_good_daemon_good(daemon):
    found = findings("doctor", "--endpoint", daemon.endpoint, "--python", sys.executable)
    assert found["daemon.reachable"]["severity"] == "ok"
    assert found["daemon.version"]["severity"] == "ok"
    assert found["socket"]["severity"] == "ok"
    assert found["python.package"]["severity"] == "ok", found["python.package"]
    assert found["gpu.driver"]["severity"] in ("ok", "note")
    text = eaglectl("--endpoint", daemon.endpoint, "doctor", "--all", check=False).stdout
    assert "[kernel.version]" in text
    assert "fine" in text.splitlines()[-1]


def test_doctor_names_a_daemon_that_is_not_there(short_path):
    endpoint = f"unix:{short_path}/none.sock"
    assert findings("doctor", "--endpoint", endpoint)["daemon.reachable"]["severity"] == "problem"
    assert "daemon.reachable" not in findings("doctor", "--no-daemon", "--endpoint", endpoint)


def test_doctor_names_a_stale_socket(short_path):
    daemon = Daemon(short_path)
    daemon.process.kill()
    daemon.process.wait()
    found = findings("doctor", "--endpoint", daemon.endpoint)
    assert found["socket"]["severity"] == "warning"
    assert "nobody listens" in found["socket"]["what"]


def test_doctor_names_few_descriptors():
    done = subprocess.run(
        ["prlimit", "--nofile=256:256", EAGLECTL, "--json", "doctor", "--no-daemon"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    found = {one["id"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["limits.nofile"]["severity"] == "problem"
    assert done.returncode == UNWELL


def test_doctor_names_a_cache_that_others_can_write(tmp_path):
    tmp_path.chmod(0o777)
    found = findings("doctor", "--no-daemon", EAGLE_CACHE_DIR=str(tmp_path))
    assert found["compiler.cache"]["severity"] == "warning"
    tmp_path.chmod(0o700)
    assert findings("doctor", "--no-daemon", EAGLE_CACHE_DIR=str(tmp_path))["compiler.cache"]["severity"] == "ok"


def test_doctor_names_another_distribution_of_the_same_package(tmp_path):
    information = tmp_path / "birds-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: birds\nVersion: 1.0\n")
    (information / "RECORD").write_text("eagle/__init__.py,,\nbirds-1.0.dist-info/METADATA,,\n")
    (tmp_path / "eagle").mkdir()
    (tmp_path / "eagle/__init__.py").write_text("raise SystemExit('imported')\n")
    found = findings("doctor", "--no-daemon", "--python", sys.executable, PYTHONPATH=str(tmp_path))
    assert found["python.package"]["severity"] == "problem"


def test_doctor_names_a_missing_helper(tmp_path):
    found = findings("doctor", "--no-daemon", EAGLE_COMPILE_HELPER=str(tmp_path / "none"))
    assert found["compiler.helper"]["severity"] == "problem"


# ---- record and replay

PROGRAM = """
import sys
import numpy as np
import eagle
sys.path.insert(0, {models!r})
from models import affine
from eagle.graph import opaque

session = eagle.connect()
rng = np.random.default_rng(7411)
x, y = session.asarray(rng.standard_normal(1000)), session.zeros(1000)
g = eagle.Graph(session, name="recorded")
g.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0))
g.build()
g.launch(2)
x[:] = 3.0
g.launch()
assert y[0] == 7.0

calls = 0
def sensor():
    global calls
    calls += 1
    if calls == 2:
        raise ValueError("the sensor has gone")
    x[0] += 1.0

h = eagle.Graph(session, name="faulty")
h.add_node(opaque(sensor, reads={{"x": x}}, writes={{"x": x}}), name="sensor")
h.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0))
h.build()
try:
    h.launch(3)
except ValueError as error:
    print("failed:", error)
session.close()
sys.exit(5)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(models=str(ROOT / "tests/integration")))
    return [sys.executable, str(file)]


@pytest.mark.parametrize("contents", [True, False], ids=["with contents", "without"])
def test_a_program_is_recorded_and_replayed(ctl, program, tmp_path, contents):
    file = str(tmp_path / "run.eaglerec")
    options = ["--with-contents"] if contents else []
    recorded = eaglectl("--endpoint", ctl.endpoint, "record", file, *options, "--", *program, check=False)
    assert recorded.returncode == 5, recorded.stderr  # the program's own
    assert "failed: the sensor has gone" in recorded.stdout

    said = ctl.json("replay", file, "--info")
    assert said["with_contents"] is contents
    assert not said["cut_short"]
    assert said["failed"] == 1

    replayed = ctl.json("replay", file, "--verify")
    assert replayed["verified"] is contents
    assert replayed["different"] == 0
    launches = [one for one in replayed["requests"] if one["kind"] == "launch"]
    assert [one["graph"] for one in launches] == ["recorded", "recorded", "faulty"]
    failed = launches[-1]
    assert failed["recorded"]["reason"] == failed["replayed"]["reason"] == "HOST_CALL_FAILED"
    assert [one["bits"] for one in launches[:2]] == (["equal"] * 2 if contents else ["not compared"] * 2)

    # In process too, where other code computes; and several times, for a benchmark.
    assert ctl.json("replay", file, "--in-process", "--verify")["different"] == 0
    rounds = ctl.json("replay", file, "--rounds", "3")["requests"]
    assert all(len(one["seconds"]) == 3 for one in rounds)
    text = ctl.text("replay", file, "--all")
    assert "HOST_CALL_FAILED" in text
    assert "0 not as recorded" in text


def test_a_difference_is_found_and_told(ctl, program, tmp_path):
    """On a daemon that has no room for its arrays."""
    file = str(tmp_path / "run.eaglerec")
    eaglectl("--endpoint", ctl.endpoint, "record", file, "--", *program, check=False)
    damaged = bytearray(Path(file).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    code, error = ctl.ended("replay", str(tmp_path / "damaged"))
    assert (code, "the entry at byte" in error) == (REFUSED, True), error
    code, error = ctl.ended("replay", str(tmp_path / "none"))
    assert (code, "cannot be read" in error) == (REFUSED, True)
    code, error = ctl.ended("replay", file, "--most-bytes", "16")
    assert (code, "--most-bytes" in error) == (REFUSED, True)
    assert ctl.ended("record", file, "--", str(tmp_path / "none"))[0] == REFUSED


FAR = """
import sys
sys.path.insert(0, {models!r})
import numpy as np
import eagle
from models import affine

session = eagle.connect()
x, y = session.asarray(np.arange(100.0)), session.zeros(100)
g = eagle.Graph(session, name="far")
g.add(eagle.plan(affine).bind(x=x, y=y, a=2.0, b=1.0))
g.build()
g.launch()
assert y[99:].numpy()[0] == 199.0
session.close()
"""


def test_a_recording_over_tcp_has_its_values(short_path, tmp_path):
    daemon = Daemon(short_path, "--listen", "dns:127.0.0.1:0")
    try:
        endpoint = tcp_endpoint(daemon)
        file = tmp_path / "tcp.eaglerec"
        script = tmp_path / "tcp.py"
        script.write_text(FAR.format(models=str(ROOT / "tests/integration")))
        eaglectl("--endpoint", endpoint, "record", str(file), "--with-contents", "--", sys.executable, str(script))
        assert np.arange(100.0).tobytes() in file.read_bytes()
        assert Ctl(endpoint).json("replay", str(file), "--verify")["different"] == 0
        assert Ctl(daemon.endpoint).json("replay", str(file))["different"] == 0
    finally:
        daemon.stop()


# ---- bench and verify


def test_bench_measures_every_way(ctl):
    said = ctl.json("bench", "--launches", "20")
    ways = {one["way"]: one for one in said["latencies"]}
    assert set(ways) == {"in process", "ring", "grpc"}
    assert all(one["launches"] == 20 and 0 < one["min_s"] <= one["median_s"] for one in ways.values()), ways
    assert isinstance(said["busy"], bool)
    assert "load" in ctl.text("bench", "--launches", "5")


def test_verify_passes_on_this_host():
    done = eaglectl("--json", "verify", patience_s=150.0)  # compiles over a hundred kernels
    said = json.loads(done.stdout)
    assert said["passed"]
    names = [(one["name"], one["target"]) for one in said["checks"]]
    assert ("kernels", "native") in names
    assert ("kernels", "x86-64") in names
    assert ("sums", "1 thread") in names


def test_verify_and_doctor_look_at_the_gpus_that_there_are(monkeypatch):
    monkeypatch.setenv("EAGLE_CUDA_DRIVER", str(BUILD / "fake_cuda/libcuda.so.1"))
    monkeypatch.setenv("EAGLE_FAKE_CUDA", "devices=2")
    done = eaglectl("--json", "verify", patience_s=150.0)
    checks = {(one["name"], one["target"]): one for one in json.loads(done.stdout)["checks"]}
    for name in ("kernels", "graphs"):
        assert checks[name, "cuda:0, fake GPU 0"]["passed"]
        assert checks[name, "cuda:1, fake GPU 1"]["passed"]
    found = json.loads(eaglectl("--json", "doctor", "--no-daemon", "--all", check=False).stdout)["findings"]
    assert any(one["id"] == "gpu.cuda0" and "sm_90" in one["what"] for one in found)


def test_verify_fails_where_a_gpu_does(monkeypatch):
    monkeypatch.setenv("EAGLE_CUDA_DRIVER", str(BUILD / "fake_cuda/libcuda.so.1"))
    monkeypatch.setenv("EAGLE_FAKE_CUDA", "fail_launch=3")
    done = eaglectl("--json", "verify", check=False, patience_s=150.0)
    assert done.returncode == 3
    failed = [one for one in json.loads(done.stdout)["checks"] if not one["passed"]]
    # What is lost after the fault stays so.
    assert [(one["name"], one["target"]) for one in failed] == [
        ("kernels", "cuda:0, fake GPU 0"),
        ("graphs", "cuda:0, fake GPU 0"),
    ]
    assert all("CUDA_ERROR_ILLEGAL_ADDRESS" in one["detail"] for one in failed)


# ---- over TCP


def test_tls_and_tokens_are_files(short_path, tmp_path):
    from pki import Authority

    authority = Authority(tmp_path / "pki", "test")
    certificate, key = authority.sign("server", hosts="IP:127.0.0.1")
    made = subprocess.run(
        [BUILD / "bin/eagled", "--new-token", "operator"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    token, row = (line.partition(": ")[2] for line in made)
    tokens = tmp_path / "tokens"
    tokens.write_text(row + "\n")
    tokens.chmod(0o600)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    daemon = Daemon(short_path, "--listen", "dns:127.0.0.1:0", *tls, "--tokens", str(tokens))
    try:
        endpoint = tcp_endpoint(daemon)
        file = tmp_path / "token"
        file.write_text(token + "\n")
        good = ("--endpoint", endpoint, "--tls-ca", str(authority.ca), "--token-file", str(file))
        info = json.loads(eaglectl("--json", *good, "info").stdout)
        assert info["tenant"] == "token:operator"
        assert info["transport"] == "copy + grpc"
        file.write_text("\n")
        done = eaglectl(*good, "info", check=False)
        assert done.returncode == REFUSED
        assert "--token-file" in done.stderr
        done = eaglectl("--endpoint", endpoint, "--timeout", "2", "info", check=False)
        assert done.returncode == REFUSED
    finally:
        daemon.stop()


# ---- documents


def test_man_pages_and_completions_are_what_the_programs_say():
    done = subprocess.run(
        [sys.executable, ROOT / "docs/tools/cli.py", "--check"],
        env={**os.environ, "EAGLE_BUILD_DIR": str(BUILD)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def commands() -> list[str]:
    page = (ROOT / "docs/man/eaglectl.1").read_text()
    return [name.replace("\\-", "-") for name in re.findall(r"^\.SS ([\w\\-]+)", page, re.MULTILINE)]


def test_every_command_has_its_place_in_the_manual():
    page = (ROOT / "docs/manual/eaglectl.md").read_text()
    headings = " ".join(re.findall(r"^#+ (.*)$", page, re.MULTILINE)).replace(",", " ").split()
    assert len(commands()) > 15
    assert [name for name in commands() if name not in headings] == []


def test_bash_completes_commands_options_and_choices():
    script = r"""
source "$1"
complete_line() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _eaglectl
  printf '%s ' "${COMPREPLY[@]}"
  echo
}
complete_line eaglectl gra
complete_line eaglectl show --s
complete_line eaglectl --json log-level d
complete_line eaglectl --endpoint unix:x inf
"""
    done = subprocess.run(
        ["bash", "-c", script, "bash", ROOT / "docs/completion/eaglectl.bash"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"},
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert sorted(lines[0]) == ["graph", "graphs"]
    assert "--svg" in lines[1]
    assert lines[2] == ["debug"]
    assert lines[3] == ["info"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completions_name_every_command(shell):
    name = {"zsh": "_eaglectl", "fish": "eaglectl.fish"}[shell]
    text = (ROOT / "docs/completion" / name).read_text()
    assert [command for command in commands() if command not in text] == []


def test_man_pages_are_well_formed():
    """Every request is one that man knows, and no line of text begins as one."""
    for page in (ROOT / "docs/man").iterdir():
        requests = set(re.findall(r"^\.(\S+)", page.read_text(), re.MULTILINE))
        assert requests <= {'\\"', "TH", "SH", "SS", "TP"}, page
