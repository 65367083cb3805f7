"""Where settings come from, what is refused, and what SIGHUP changes."""

import os
import signal
from pathlib import Path

import eagle
import pytest
from harness import Daemon, children, tcp_endpoint, wait_until
from operators import run_eagled, service_of, wait_for_log, write_config
from work import HeldLaunch


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    config = tmp_path / "eagled.toml"
    write_config(config, 'log_level = "warn"', "drain_timeout = 5", "compile_timeout = 7", "[limits]", "sessions = 12")
    printed = run_eagled(
        *("--listen", "unix:/tmp/s", "--compile-timeout", "9", "--print-config"),
        EAGLED_CONFIG=str(config),
        EAGLED_COMPILE_TIMEOUT="8",
        EAGLED_DRAIN_TIMEOUT="6",
    )
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert "compile_timeout = 9  # flag --compile-timeout" in lines
    assert "drain_timeout = 6  # environment EAGLED_DRAIN_TIMEOUT" in lines
    assert f"log_level = 'warn'  # file '{config}' line 1" in lines
    assert f"sessions = 12  # file '{config}' line 5" in lines
    assert "threads = 0  # default" in lines
    assert "[[listen]]  # flag --listen" in lines


def test_what_is_printed_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    config = tmp_path / "eagled.toml"
    write_config(
        config,
        *('admins = ["uid:7", "token:ops"]', 'metrics = "127.0.0.1:0"', 'log_format = "json"', "threads = 2"),
        *("[[listen]]", 'endpoint = "unix:/tmp/s"', "[[tenant]]", 'principal = "*"', "weight = 2.5"),
        *("[limits]", "jobs = 77"),
    )
    first = run_eagled("--config", str(config), "--print-config")
    again = tmp_path / "again.toml"
    again.write_text(first.stdout)
    second = run_eagled("--config", str(again), "--print-config")

    def settings(text: str) -> list[str]:
        return [line.partition("  #")[0] for line in text.splitlines()]

    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert settings(first.stdout) == settings(second.stdout)
    assert "jobs = 77" in settings(first.stdout)


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    made = run_eagled("--new-token", "ops").stdout
    line = next(part.rpartition(": ")[2] for part in made.splitlines() if part.startswith("line"))
    tokens = tmp_path / "tokens"
    tokens.write_text(line + "\n")
    tokens.chmod(0o600)
    printed = run_eagled("--listen", "unix:/tmp/s", "--tokens", str(tokens), "--print-config")
    assert printed.returncode == 0, printed.stderr
    assert str(tokens) in printed.stdout
    assert line.split()[0] not in printed.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("drain_timout = 3", "'drain_timeout'"),
        ("[limits]\nsesions = 3", "'sessions'"),
        ("[limits]\nsessions = 0", "from 1 to"),
        ('admins = ["everybody"]', "uid:N"),
        ("metrics = 7412", "HOST:PORT"),
        ('metrics = "127.0.0.1"', "7412"),
        ('log_format = "xml"', '"json"'),
    ],
)
def test_a_mistake_is_refused_with_what_to_write_instead(tmp_path: Path, line: str, expected: str) -> None:
    config = tmp_path / "eagled.toml"
    write_config(config, line)
    checked = run_eagled("--listen", "unix:/tmp/s", "--config", str(config), "--check-config")
    assert checked.returncode != 0
    assert expected in checked.stderr


def test_sighup_takes_over_limits_tenants_admins_and_the_level(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "threads = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        with service_of(daemon) as admin:
            admin.call("Admin.Metrics")  # as root, or whom the daemon runs as
            write_config(
                config,
                *("threads = 2", 'admins = ["uid:4711"]', "[limits]", "sessions = 1"),
                *("[[tenant]]", 'principal = "*"', "weight = 4"),
            )
            daemon.process.send_signal(signal.SIGHUP)
            wait_for_log(daemon, "reload: the configuration holds: 1 tenants")
            assert "what changed of threads holds from the next start on" in daemon.log()
            assert [tenant.weight for tenant in admin.call("Admin.Info").tenants] == [4.0]
            with pytest.raises(Exception, match="admins"):
                admin.call("Admin.Metrics")
            with pytest.raises(eagle.EagleError, match=r"limit \(sessions\)"):
                eagle.connect(daemon.endpoint)
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_a_bad_file_changes_nothing_and_the_log_says_so(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "[limits]", "sessions = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        write_config(config, "[limits]", "sessions = 100", "graphs = 0")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "the configuration stays as it was")
        assert "graphs: expected a whole number from 1" in daemon.log()
        with eagle.connect(daemon.endpoint), pytest.raises(eagle.EagleError, match="sessions"):
            eagle.connect(daemon.endpoint)
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_tokens_are_read_anew_or_stay_as_they_were(short_path: Path) -> None:
    def token(subject: str) -> tuple[str, str]:
        lines = run_eagled("--new-token", subject).stdout.splitlines()
        return lines[0].rpartition(": ")[2], lines[1].rpartition(": ")[2]

    (first, first_line), (second, second_line) = token("first"), token("second")
    tokens, config = short_path / "tokens", short_path / "eagled.toml"
    tokens.write_text(first_line + "\n")
    tokens.chmod(0o600)
    write_config(config, "[tokens]", f'file = "{tokens}"')
    daemon = Daemon(short_path, "--config", str(config), "--listen", "dns:127.0.0.1:0")
    try:
        endpoint = tcp_endpoint(daemon)

        def known(secret: str) -> bool:
            try:
                eagle.connect(endpoint, auth=secret).close()
            except eagle.EagleError as error:
                if error.reason != "UNAUTHENTICATED":
                    raise
                return False
            return True

        assert known(first)
        assert not known(second)
        tokens.write_text("a line that is none\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "the configuration stays as it was")
        assert known(first)
        tokens.write_text(second_line + "\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "reload: the configuration holds")
        assert known(second)
        assert not known(first)
    finally:
        assert daemon.stop() == 0, daemon.log()


def limited(daemon: Daemon) -> bool:
    """Whether it has room for no second session."""
    with eagle.connect(daemon.endpoint):
        try:
            eagle.connect(daemon.endpoint).close()
        except eagle.EagleError:
            return True
        return False


@pytest.mark.parametrize("hangup", [True, False], ids=["refused", "never read"])
def test_another_worker_has_the_configuration_that_holds_and_not_the_file(short_path: Path, hangup: bool) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "[limits]", "sessions = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        wait_for_log(daemon, "serves unix:")
        for text in ("[limits]\nsesions = 1", "[limits]\nsessions = 100"):
            write_config(config, text)
            if hangup and "sesions" in text:
                daemon.process.send_signal(signal.SIGHUP)
                wait_for_log(daemon, "the configuration stays as it was")
            worker = children(daemon.process.pid)[0]
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda gone=worker: children(daemon.process.pid) not in ([], [gone]), "another worker")
            wait_until(lambda: limited(daemon), f"the limit that was accepted\n{daemon.log()}")
        assert daemon.log().count("starting another") == 2, daemon.log()
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_another_worker_has_what_a_reload_brought(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "threads = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        write_config(config, "threads = 1", "[limits]", "sessions = 1")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "reload: the configuration holds")
        os.kill(children(daemon.process.pid)[0], signal.SIGKILL)
        wait_for_log(daemon, "serves unix:", times=2)
        assert limited(daemon)
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_what_only_the_worker_finds_wrong_changes_nothing_of_the_keepers(short_path: Path) -> None:
    """Files that the configuration names are the worker's to read; the drain timeout is the keeper's."""
    config = short_path / "eagled.toml"
    write_config(config, "drain_timeout = 1")
    daemon = Daemon(short_path, "--config", str(config))
    session = eagle.connect(daemon.endpoint)
    held = HeldLaunch(session)
    write_config(config, "drain_timeout = 3600", "[tokens]", f'file = "{short_path}/none"')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_log(daemon, "the configuration stays as it was")
    assert daemon.stop() == 0, daemon.log()
    wait_for_log(daemon, "drained: 1 of 1 jobs were cancelled")
    assert isinstance(held.let_go(), eagle.EagleError)


def test_a_reload_looks_at_what_check_config_looks_at(short_path: Path) -> None:
    config = short_path / "eagled.toml"
    write_config(config, "threads = 1")
    daemon = Daemon(short_path, "--config", str(config))
    try:
        write_config(config, 'metrics = "127.0.0.1"')
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "the configuration stays as it was: metrics: expected HOST:PORT")
    finally:
        assert daemon.stop() == 0, daemon.log()


def test_a_variable_that_nothing_reads_is_refused() -> None:
    checked = run_eagled("--listen", "unix:/tmp/s", "--check-config", EAGLED_DRAIN_TIMOUT="3")
    assert checked.returncode == 2
    assert "nearest is EAGLED_DRAIN_TIMEOUT" in checked.stderr
