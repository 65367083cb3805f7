"""Log lines: one an event, with ids and the trace that they belong to; the level."""

import re
import signal
from pathlib import Path

import eagle
import pytest
from harness import Daemon, wait_until
from operators import TRACE, TRACEPARENT, json_log, service_of, wait_for_log, write_config
from work import add


@pytest.fixture
def json_daemon(short_path: Path):
    daemon = Daemon(short_path, "--log-format", "json", "--log-level", "debug")
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log()
        json_log(daemon)  # every line is an object, up to the last one


def launch_once(endpoint: str, traceparent: str | None = None) -> None:
    with eagle.connect(endpoint, traceparent=traceparent) as session:
        eagle.Graph(session).add(eagle.plan(add).bind(x=session.zeros(8), by=1.0)).build().launch()


def test_a_json_line_has_the_ids_of_what_it_is_about(json_daemon: Daemon) -> None:
    launch_once(json_daemon.endpoint)
    wait_until(lambda: "launched" in json_daemon.log(), "the launch's line")
    launched = next(line for line in json_log(json_daemon) if line["message"].startswith("launched"))
    assert re.fullmatch(r"[0-9a-f]{16}", launched["session"])
    assert launched["graph"] == 1
    assert launched["launch"] >= 1
    assert launched["level"] == "debug"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", launched["time"])
    assert "trace_id" not in launched
    opened = next(line for line in json_log(json_daemon) if line["message"].startswith("opened"))
    assert opened["session"] == launched["session"]


def test_the_trace_of_a_client_is_on_every_line_of_its_work(json_daemon: Daemon) -> None:
    launch_once(json_daemon.endpoint, TRACEPARENT)
    wait_for_log(json_daemon, "ended planes")
    traced = [line for line in json_log(json_daemon) if line.get("session")]
    words = [line["message"].split()[0] for line in traced]
    assert words == ["opened", "built", "launched", "ended"]
    assert {line.get("trace_id") for line in traced} == {TRACE}
    assert {line.get("span_id") for line in traced} == {TRACEPARENT.split("-")[2]}


def test_a_traceparent_of_a_call_goes_before_that_of_the_session(json_daemon: Daemon) -> None:
    with service_of(json_daemon) as admin:
        admin.call("Admin.SetLogLevel", ("traceparent", TRACEPARENT), level="debug")
        admin.call("Admin.SetLogLevel", ("traceparent", "nonsense"), level="debug")
    wait_for_log(json_daemon, "log level:", times=2)
    traces = [line.get("trace_id") for line in json_log(json_daemon) if line["message"].startswith("log level")]
    assert traces == [TRACE, None]


def test_a_traceparent_that_is_none_is_refused_by_the_client(json_daemon: Daemon) -> None:
    with pytest.raises(ValueError, match="W3C"):
        eagle.connect(json_daemon.endpoint, traceparent="00-abc")


def test_what_a_client_calls_itself_breaks_no_line(json_daemon: Daemon) -> None:
    with eagle.connect(json_daemon.endpoint) as session:
        g = eagle.Graph(session, name='two\nlines "and" \\ more')
        g.add(eagle.plan(add).bind(x=session.zeros(8), by=1.0)).build()
    wait_for_log(json_daemon, "built")
    assert any(line["message"].startswith("built") for line in json_log(json_daemon))


def test_text_lines_carry_the_same(daemon: Daemon) -> None:
    launch_once(daemon.endpoint, TRACEPARENT)
    wait_for_log(daemon, "ended planes")
    assert re.search(rf"info session=[0-9a-f]{{16}} graph=1 trace={TRACE} built name=", daemon.log())


def test_the_level_changes_by_rpc_and_by_sighup(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "threads = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:  # the harness says --log-level info: SIGHUP goes back to that
        with service_of(daemon) as admin:
            assert admin.call("Admin.SetLogLevel", level="debug").previous == "info"
            launch_once(daemon.endpoint)
            wait_for_log(daemon, "launched")
            with pytest.raises(Exception, match="expected trace, debug"):
                admin.call("Admin.SetLogLevel", level="loud")
            daemon.process.send_signal(signal.SIGHUP)
            wait_for_log(daemon, "log_level=info")
            launch_once(daemon.endpoint)
            wait_for_log(daemon, "ended planes", times=2)
            assert daemon.log().count("launched") == 1
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_admin_tells_the_newest_lines(daemon: Daemon) -> None:
    launch_once(daemon.endpoint)
    with service_of(daemon) as admin:
        wait_until(
            lambda: any("ended planes" in line for line in admin.call("Admin.RecentLog").lines), "the session's end"
        )
        everything = list(admin.call("Admin.RecentLog").lines)
        assert list(admin.call("Admin.RecentLog", lines=2).lines) == everything[-2:]
