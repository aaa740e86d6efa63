"""Tests the settings of processes in SQL: SHOW, pg_settings, ALTER SYSTEM and pg_reload_conf()."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate import cli
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.errors import InsufficientPrivilege
from tailgate.operations.settings import configuration, system
from tailgate.operations.settings.process import FOLDER, ProcessSettings
from testing.engine_process import until
from tests.wire.live import Live

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Live]:
    """A gateway with the settings of `tailgate gateway --data … --http-log`. SIGHUP of this process reads them again."""
    words = ["gateway", "--data", str(folder / "lake"), "--http-log", "--config", str(folder / "tailgate.toml")]
    (folder / "tailgate.toml").write_text('[gateway]\nhttp-rate = 7\nconsole = "127.0.0.1:9"\n')
    before = signal.getsignal(signal.SIGHUP)
    settings = cli.process_settings(configuration.parse(cli.parser(), words, {}), words, {})
    live = Live(folder / "lake", settings=settings)
    settings.publish(live.model.lake.store)
    system.clear(live.model.lake.store)
    yield live
    settings.withdraw()
    live.close()
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def connection(live: Live) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        yield connection
        connection.execute("ALTER SYSTEM RESET ALL")


def ask(connection: psycopg.Connection[Any], sql: str) -> Rows:
    return connection.execute(sql.encode()).fetchall()


def failure(connection: psycopg.Connection[Any], sql: str) -> tuple[str, str, str | None]:
    with pytest.raises(psycopg.Error) as info:
        connection.execute(sql.encode())
    diagnostic = info.value.diag
    assert diagnostic.sqlstate is not None and diagnostic.message_primary is not None
    return diagnostic.sqlstate, diagnostic.message_primary, diagnostic.message_hint


def test_show_and_pg_settings_have_the_options_of_the_gateway(folder: Path, connection: psycopg.Connection[Any]) -> None:
    assert ask(connection, "SHOW gateway.http_rate") == [("7.0",)]
    listed = {name: value for name, value, _ in ask(connection, "SHOW ALL")}
    assert (listed["gateway.http_log"], listed["gateway.memory"]) == ("on", "")
    file = str(folder / "tailgate.toml")
    columns = "setting, context, vartype, source, sourcefile, sourceline, pending_restart"
    assert ask(connection, f"SELECT {columns} FROM pg_settings WHERE name = 'gateway.http_rate'") == [
        ("7.0", "postmaster", "real", "configuration file", file, 2, False)  # no HTTP service runs, so nothing can change
    ]
    assert ask(connection, "SELECT setting, source, enumvals FROM pg_settings WHERE name = 'gateway.log'") == [
        ("text", "default", ["text", "json"])
    ]
    assert ask(connection, "SELECT setting, source FROM pg_settings WHERE name = 'gateway.http_log'") == [("on", "command line")]
    without_value = "SELECT setting, boot_val, vartype, max_val FROM pg_settings WHERE name = 'gateway.http_streams'"
    assert ask(connection, without_value) == [("", "", "integer", "4900")]
    assert ask(connection, "SELECT setting, context FROM pg_settings WHERE name = 'real_time_recency_timeout'") == [("10s", "user")]


def test_settings_of_other_processes_are_shown_while_they_run(live: Live, folder: Path, connection: psycopg.Connection[Any]) -> None:
    words = ["engine", "--data", str(folder / "lake"), "--held-log", "2GB"]
    options = configuration.parse(cli.parser(), words, {"TAILGATE_HISTORY": "90min"})
    other = ProcessSettings("engine", options.values, lambda: (), {c.name: c for c in configuration.commands(cli.parser())})
    other.publish(live.model.lake.store)
    assert ask(connection, "SHOW engine.held_log") == [("2GB",)]
    columns = "name, setting, unit, min_val, max_val, boot_val, source"
    names = "name IN ('engine.held_log', 'engine.history')"
    assert ask(connection, f"SELECT {columns} FROM pg_settings WHERE {names} ORDER BY name") == [
        ("engine.held_log", "2048", "MB", "1024", "1073741824", "20480", "command line"),
        ("engine.history", "5400", "s", "1", "2592000", "3600", "environment variable"),
    ]
    file = folder / "lake" / FOLDER / f"engine.{os.getpid()}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "started": 1}))  # as if its process had ended
    assert failure(connection, "SHOW engine.held_log")[0] == "42704"
    assert not file.exists()


def test_a_session_cannot_set_them(connection: psycopg.Connection[Any]) -> None:
    assert failure(connection, "SET gateway.log = 'json'") == ("55P02", 'parameter "gateway.log" cannot be changed now', None)
    message = 'parameter "gateway.memory" cannot be changed without restarting the server'
    assert failure(connection, "SET gateway.memory = '2GB'") == ("55P02", message, None)


def test_ordinary_roles_do_not_see_them(live: Live) -> None:
    settings = Settings()
    settings.processes = live.gateway.processes
    assert "gateway.log" in {name for name, _, _ in settings.all()}
    settings.superuser = lambda: False
    assert "gateway.log" not in {name for name, _, _ in settings.all()}
    with pytest.raises(InsufficientPrivilege, match='pg_read_all_settings to examine "gateway'):
        settings.get("gateway.log")


def test_an_unknown_name_is_reported_with_the_nearest_one(connection: psycopg.Connection[Any]) -> None:
    assert failure(connection, "SHOW gatewy.log")[0] == "42704"
    assert failure(connection, "SHOW gateway.http_rat")[2] == 'Perhaps you meant "gateway.http_rate".'
    assert failure(connection, "SHOW statement_timout") == (
        "42704",
        'unrecognized configuration parameter "statement_timout"',
        'Perhaps you meant "statement_timeout".',
    )
    missing = "SELECT current_setting('gateway.log', true) IS NULL, current_setting('gateway.http_rat', true) IS NULL"
    assert ask(connection, missing) == [(False, True)]


def test_custom_settings_may_have_the_name_of_another_command(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET demo.color = 'red'")
    assert ask(connection, "SHOW demo.color") == [("red",)]


def test_alter_system_sets_the_initial_values_of_sessions(live: Live, folder: Path, connection: psycopg.Connection[Any]) -> None:
    for sql in ("SET statement_timeout = '30 s'", "SET work_mem TO DEFAULT", 'SET search_path = a, "B"', "SET gateway.log = json"):
        assert connection.execute(f"ALTER SYSTEM {sql}".encode()).statusmessage == "ALTER SYSTEM"
    assert ask(connection, "SHOW statement_timeout") == [("0",)]
    assert ask(connection, "SELECT pg_reload_conf()") == [(True,)]
    until(lambda: live.gateway.defaults)
    with psycopg.connect(live.dsn) as other:
        assert (ask(other, "SHOW statement_timeout"), ask(other, "SHOW search_path")) == ([("30s",)], [('a, "B"',)])
        assert ask(other, "SHOW gateway.log") == [("json",)]
        assert ask(other, "SELECT source, sourcefile FROM pg_settings WHERE name = 'gateway.log'") == [
            ("configuration file", str(folder / "lake" / "tailgate.auto.toml"))
        ]
    command = [sys.executable, "-m", "tailgate", "config", "--json", "gateway", "--data", str(folder / "lake")]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=Path(__file__).parents[3]).stdout
    printed = {line["name"]: line for line in map(json.loads, output.splitlines())}
    assert printed["log"] == {"name": "log", "value": "json", "origin": f"{folder}/lake/tailgate.auto.toml:5"}
    assert printed["set"]["value"] == ["statement_timeout=30s", 'search_path=a, "B"']

    connection.execute("ALTER SYSTEM RESET statement_timeout")
    connection.execute("ALTER SYSTEM RESET gateway.log")
    connection.execute("SELECT pg_reload_conf()")
    until(lambda: list(live.gateway.defaults) == ["search_path"])
    assert ask(connection, "SHOW gateway.log") == [("text",)]


def test_an_error_of_the_file_changes_nothing(live: Live, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "tailgate.toml").write_text("[gateway]\nhttp-rat = 7\n")
    os.kill(os.getpid(), signal.SIGHUP)
    until(lambda: "the settings were not changed" in caplog.text)
    assert 'Perhaps you meant "http-rate"' not in caplog.text  # the log has the message, with its position
    assert 'tailgate.toml:2: "http-rat" is not a setting of tailgate gateway' in caplog.text
    (folder / "tailgate.toml").write_text('[gateway]\nhttp-rate = 8\nconsole = "127.0.0.1:9"\n')
    os.kill(os.getpid(), signal.SIGHUP)
    until(lambda: 'parameter "gateway.http_rate" cannot be changed without restarting' in caplog.text)
    with psycopg.connect(live.dsn) as connection:
        assert ask(connection, "SELECT setting, pending_restart FROM pg_settings WHERE name = 'gateway.http_rate'") == [("7.0", True)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET statement_timeout = 'x'", ("22023", 'invalid value for parameter "statement_timeout": "x"')),
        ("SET statment_timeout = 1", ("42704", 'unrecognized configuration parameter "statment_timeout"')),
        ("SET server_version = '9'", ("55P02", 'parameter "server_version" cannot be changed')),
        ("SET a.b = '9'", ("42704", 'unrecognized configuration parameter "a.b"')),
        ("SET gateway.lg = json", ("42704", 'unrecognized configuration parameter "gateway.lg"')),
        ("SET gateway.log = xml", ("22023", 'parameter "gateway.log": invalid value for log: "xml"')),
        ("SET gateway.listen = '0.0.0.0:1'", ("55P02", 'parameter "gateway.listen" cannot be changed')),
        ("SET watch.alert_commands = on", ("55P02", 'parameter "watch.alert_commands" cannot be changed')),
        ("SET watch.webhook = 'ftp://a'", ("22023", 'parameter "watch.webhook": invalid value for webhook: "ftp://a"')),
        ("SET engine.held_log = '1MB'", ("22023", 'parameter "engine.held_log": invalid value for held-log: "1MB"')),
        ("SET gateway.log", ("42601", "syntax error at end of input")),
    ],
)
def test_errors_of_alter_system(connection: psycopg.Connection[Any], folder: Path, sql: str, expected: tuple[str, str]) -> None:
    assert failure(connection, f"ALTER SYSTEM {sql}")[:2] == expected
    assert "[" not in (folder / "lake" / "tailgate.auto.toml").read_text()


def test_alter_system_runs_outside_of_blocks_only(live: Live, connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        assert failure(connection, "ALTER SYSTEM RESET ALL") == ("25001", "ALTER SYSTEM cannot run inside a transaction block", None)
