"""Tests CREATE ALERT: the statement, and alerts that fire for rows of a query and for objectives."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.catalog import Objective
from tailgate.operations.sketch import STEP_S, Sketch
from tailgate.operations.watch import alert_items, main, silences, states
from tailgate.operations.watch.delivery import Webhook
from tailgate.operations.watch.objectives import Objectives
from testing.engine_process import until
from tests.operations.watch.receiver import Receiver
from tests.wire.live import Live

RAISED_S = 10.0


@pytest.fixture
def receivers() -> Iterator[tuple[Receiver, Receiver]]:
    """Webhooks: that of the process, and that of an alert."""
    receivers = Receiver(), Receiver()
    yield receivers
    for receiver in receivers:
        receiver.stop()


@pytest.fixture
def watcher(live: Live, receivers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch) -> Iterator[main.Watcher]:
    for module, name, seconds in (
        (states, "QUIET_S", 0.1),
        (main, "POLL_S", 0.05),
        (alert_items, "ASK_S", 0.05),
        (states, "UPDATE_S", 0.2),
    ):
        monkeypatch.setattr(module, name, seconds)
    target = Webhook(receivers[0].url, "plain", live.model.lake.id, lambda: None, main._without_webhooks)
    watcher = main.Watcher(live.model.lake, [target])
    thread = threading.Thread(target=watcher.run)
    thread.start()
    yield watcher
    watcher.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_each_row_is_an_alert(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    process, own = receivers
    sql.execute(
        f"CREATE ALERT expensive AS SELECT id, amount FROM v WHERE amount > 10 SEVERITY 'warning' NOTIFY WEBHOOK '{own.url}'".encode()
    )
    live.tick([((10, "a", 11.0), 1), ((11, "b", 12.0), 1)])
    until(lambda: sorted(body["key"] for body in own.bodies) == ["10", "11"], RAISED_S)
    assert {(b["alert"], b["event"], b["severity"]) for b in own.bodies} == {("expensive", "fired", "warning")}
    assert {b["key"]: b["fields"] for b in own.bodies} == {"10": {"id": 10, "amount": 11.0}, "11": {"id": 11, "amount": 12.0}}
    live.tick([((10, "a", 11.0), -1), ((10, "a", 20.0), 1), ((11, "b", 12.0), -1)])
    until(
        lambda: own.events("expensive", "10") == ["fired", "updated"] and own.events("expensive", "11") == ["fired", "resolved"], RAISED_S
    )
    query = "SELECT key, severity, state, fields FROM tailgate.alerts WHERE alert = 'expensive' ORDER BY key"
    assert sql.execute(query).fetchall() == [
        ("10", "warning", "firing", {"id": 10, "amount": 20.0}),
        ("11", "warning", "resolved", {"id": 11, "amount": 12.0}),
    ]
    with psycopg.connect(live.dsn, autocommit=True) as other:
        other.execute("CREATE ROLE bea LOGIN")
    with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as bea:
        assert bea.execute(query).fetchall() == []
    assert "expensive" in caplog.text
    assert "20.0" not in caplog.text
    # an alert that is dropped is resolved, also for its webhook
    sql.execute("DROP ALERT expensive")
    until(lambda: own.events("expensive", "10") == ["fired", "updated", "resolved"], RAISED_S)
    assert process.events("expensive") == []
    ids = sorted(body["id"] for receiver in receivers for body in receiver.bodies)
    assert ids == list(range(ids[0], ids[0] + len(ids)))


def test_a_program_is_called(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher, tmp_path: Path
) -> None:
    process, own = receivers
    program = tmp_path / "call"
    program.write_text("#!/bin/sh\ncat >> received\necho >> received\n")
    program.chmod(0o700)
    watcher._programs = tmp_path
    query = "SELECT id FROM v WHERE amount > 1000"
    sql.execute(f"CREATE ALERT called AS {query} NOTIFY COMMAND 'call', WEBHOOK '{own.url}'".encode())
    live.tick([((40, "d", 1001.0), 1)])
    received = tmp_path / "received"
    until(lambda: own.events("called", "40") == ["fired"] and received.exists() and received.read_text().endswith("\n"), RAISED_S)
    live.tick([((40, "d", 1001.0), -1)])
    until(lambda: len(received.read_text().splitlines()) == 2, RAISED_S)
    assert [json.loads(line)["event"] for line in received.read_text().splitlines()] == ["fired", "resolved"]
    assert process.events("called") == []
    sql.execute("DROP ALERT called")


def test_a_summary_and_a_time_before_it_fires(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher
) -> None:
    process, _ = receivers
    sql.execute("CREATE ALERT total AS SELECT 'the sum is ' || sum(amount) AS summary FROM v HAVING sum(amount) > 100 FOR '1 s'")
    live.tick([((20, "c", 200.0), 1)])
    began = time.monotonic()
    until(lambda: process.events("total") == ["fired"], RAISED_S)
    assert time.monotonic() - began >= 1
    (body,) = [body for body in process.bodies if body["alert"] == "total"]
    assert (body["key"], body["severity"], body["summary"]) == ("", "page", "the sum is 209")


def test_a_query_that_fails(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_items, "FAILING_S", 0.2)
    process, _ = receivers
    sql.execute("CREATE ALERT quotient AS SELECT id, 10 / (id - 30) AS q FROM v WHERE id >= 30")
    live.tick([((30, "zero", 0.0), 1)])
    until(lambda: process.events("alert_failing", "quotient") == ["fired"], RAISED_S)
    live.tick([((30, "zero", 0.0), -1)])
    until(lambda: process.events("alert_failing", "quotient") == ["fired", "resolved"], RAISED_S)


def test_an_alert_on_an_objective(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher
) -> None:
    process, own = receivers
    sql.execute("CREATE OBJECTIVE fresh ON v (FRESHNESS max '1 s') OVER '10 s'")
    sql.execute(f"CREATE ALERT slow ON fresh NOTIFY WEBHOOK '{own.url}' WITH (format = 'alertmanager')".encode())
    lake, step = live.model.lake, int(time.time()) // STEP_S + 100
    (item,) = lake.catalog().each(Objective)
    objectives: Objectives = watcher._objectives
    until(lambda: watcher._alert_items.is_alive(), RAISED_S)
    objectives.judge(lake.catalog(), [(step, {item.depends[0]: Sketch({200: 1}, 5_000.0)})])
    until(lambda: [b["status"] for b in own.everything] == ["firing"], RAISED_S)
    assert own.everything[0]["alerts"][0]["labels"]["alertname"] == "slow"
    objectives.judge(lake.catalog(), [(step + 1, {item.depends[0]: Sketch({0: 1}, 0.0)})])
    until(lambda: [b["status"] for b in own.everything] == ["firing", "resolved"], RAISED_S)
    assert process.events("objective_violated") == []
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop objective fresh"):
        sql.execute("DROP OBJECTIVE fresh")


def test_a_silence(live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher) -> None:
    process, _ = receivers
    sql.execute("CREATE ALERT many AS SELECT id FROM v WHERE id > 50")
    sql.execute("SILENCE many UNTIL now() + interval '1 hour'")
    live.tick([((51, "x", 1.0), 1)])
    state = "SELECT state, silenced FROM tailgate.alerts WHERE alert = 'many'"
    until(lambda: sql.execute(state).fetchall() == [("firing", True)], RAISED_S)
    time.sleep(0.5)
    assert process.events("many") == []
    sql.execute("SILENCE many UNTIL '2000-01-01'")
    until(lambda: process.events("many") == ["updated"], RAISED_S)
    assert sql.execute(state).fetchall() == [("firing", False)]
    sql.execute("SILENCE disk_full UNTIL timestamptz '2100-01-01 00:00:00+00'")
    assert silences.silenced(live.model.lake) == {"disk_full"}
    with pytest.raises(psycopg.errors.UndefinedObject, match='alert "nothing" does not exist'):
        sql.execute("SILENCE nothing UNTIL '2100-01-01'")
    with pytest.raises(psycopg.errors.InvalidDatetimeFormat):
        sql.execute("SILENCE many UNTIL 'later'")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction), sql.transaction():
        sql.execute("SILENCE many UNTIL '2100-01-01'")


def test_the_texts_of_alerts(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE VIEW names AS SELECT id, name FROM v")
    text = "CREATE ALERT late AS SELECT substring(name FOR 2) AS n FROM names FOR '10 s' SEVERITY 'ticket'"
    text += " NOTIFY WEBHOOK 'http://h/a', WEBHOOK 'http://h/b'"
    sql.execute(text.encode())
    assert sql.execute("SHOW CREATE ALERT late").fetchall() == [("late", text)]
    assert sql.execute("SHOW ALERTS").fetchall() == [("late", None, "ticket", 10_000, 2, 0, 0)]
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop view names"):
        sql.execute("DROP VIEW names")
    sql.execute("ALTER VIEW names RENAME TO others")
    sql.execute("ALTER ALERT late RENAME TO later")
    assert sql.execute("SHOW CREATE ALERT later").fetchall() == [
        ("later", text.replace("late AS", "later AS").replace("names FOR", "others AS names FOR"))
    ]
    sql.execute("CREATE ALERT IF NOT EXISTS later AS SELECT 1")
    sql.execute("DROP VIEW others CASCADE")
    assert sql.execute("SHOW ALERTS").fetchall() == []


def test_a_secret_signs_requests(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE SECRET k AS 'key'")
    sql.execute("CREATE ALERT a AS SELECT id FROM v NOTIFY WEBHOOK 'http://h/a' WITH (secret = SECRET k)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop secret k"):
        sql.execute("DROP SECRET k")
    sql.execute("ALTER SECRET k RENAME TO other")
    ((_, text),) = sql.execute("SHOW CREATE ALERT a").fetchall()
    assert text.endswith("(secret = SECRET other)")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE ALERT a AS SELECT id FROM nothing", "42P01", 'relation "nothing" does not exist'),
        ("CREATE ALERT a AS SELECT nothing FROM v FOR '1 s'", "42703", 'column "nothing" does not exist'),
        ("CREATE ALERT a AS SELECT id FROM v FOR UPDATE", "0A000", None),
        ("CREATE ALERT a ON nothing", "42704", 'objective "nothing" does not exist'),
        ("CREATE ALERT a ON v", "42809", '"v" is not an objective'),
        ("CREATE ALERT a", "42601", "syntax error at end of input"),
        ("CREATE ALERT disk_full AS SELECT id FROM v", "42939", 'alert name "disk_full" is reserved'),
        ("CREATE ALERT a AS SELECT id FROM v FOR '2 days'", "22023", 'invalid FOR: "2 days"'),
        ("CREATE ALERT a AS SELECT id FROM v SEVERITY ''", "22023", 'invalid SEVERITY: ""'),
        ("CREATE ALERT a AS SELECT id FROM v NOTIFY WEBHOOK 'file:///x'", "22023", 'invalid WEBHOOK: "file:///x"'),
        (
            "CREATE ALERT a AS SELECT id FROM v NOTIFY WEBHOOK 'http://x' WITH (format = 'xml')",
            "22023",
            'invalid value for option "format"',
        ),
        ("CREATE ALERT a AS SELECT id FROM v NOTIFY WEBHOOK 'http://x' WITH (x = 1)", "0A000", 'option "x" of a webhook is not supported'),
        ("CREATE ALERT a AS SELECT id FROM v NOTIFY KAFKA 'x'", "42601", """syntax error at or near "'x'\""""),
        ("CREATE ALERT a AS SELECT id FROM v NOTIFY COMMAND '../x'", "22023", 'invalid COMMAND: "../x"'),
        ("CREATE ALERT a AS SELECT id FROM v NOTIFY COMMAND '/bin/sh'", "22023", 'invalid COMMAND: "/bin/sh"'),
    ],
)
def test_an_invalid_statement(statement: str, sqlstate: str, message: str | None, sql: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as error:
        sql.execute(statement.encode())
    assert error.value.sqlstate == sqlstate, error.value
    assert message is None or error.value.diag.message_primary == message


def test_only_superusers_create_alerts_and_see_webhooks(live: Live, sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE ALERT a AS SELECT id FROM v NOTIFY WEBHOOK 'http://h/token'")
    for statement in (
        "CREATE ROLE ann LOGIN SUPERUSER",
        "CREATE ROLE bea LOGIN",
        "CREATE SCHEMA own AUTHORIZATION bea",
        "GRANT SELECT ON v TO bea",
    ):
        sql.execute(statement.encode())
    with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as bea:
        for statement in (
            "CREATE ALERT own.a AS SELECT id FROM v",
            "SHOW CREATE ALERT public.a",
            "DROP ALERT public.a",
            "SILENCE disk_full UNTIL '2100-01-01'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                bea.execute(statement.encode())
        assert "token" not in str(bea.execute("SHOW ALERTS").fetchall())


def test_a_query_of_the_schema_tailgate(
    live: Live, sql: psycopg.Connection[Any], receivers: tuple[Receiver, Receiver], watcher: main.Watcher
) -> None:
    """The alert's owner reads these relations, together with relations of users."""
    url = receivers[1].url
    sql.execute(f"CREATE ALERT readable AS SELECT name FROM tailgate.freshness NOTIFY WEBHOOK '{url}'".encode())
    query = "SELECT m.name, v.id FROM tailgate.materialized_views m JOIN v ON v.id = 77 WHERE m.status = 'running'"
    sql.execute(f"CREATE ALERT joined AS {query} NOTIFY WEBHOOK '{url}'".encode())
    until(lambda: receivers[1].events("readable", "v") == ["fired"], RAISED_S)
    live.tick([((77, "a", 1.0), 1)])
    until(lambda: receivers[1].events("joined") == ["fired"], RAISED_S)
    assert receivers[1].bodies[-1]["fields"] == {"name": "v", "id": 77}
    live.tick([((77, "a", 1.0), -1)])
    until(lambda: receivers[1].events("joined") == ["fired", "resolved"], RAISED_S)
