"""Tests durable subscriptions: the rows of FETCH, the stored progress, and where reading continues."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from tailgate.gateway.execute import subscriptions as following
from tailgate.lake.log import ages, segments
from tailgate.lake.readers import holds, reading, subscriptions
from tailgate.lake.tables import checkpoints
from tailgate.lake.writer import retention
from tailgate.lake.writer.rounds import Follower
from tests.gateway.serving.model_lake import Row
from tests.wire.live import ROWS, Live
from tests.wire.statements import Statements
from tests.wire.wire import Client, Query

NEW: Row = (10, "ten", 10.0)
Connect = Callable[..., psycopg.Connection]


@pytest.fixture
def connect(live: Live, statements: Statements) -> Iterator[Connect]:
    opened: list[psycopg.Connection] = []

    def open_(**words: object) -> psycopg.Connection:
        opened.append(psycopg.connect(live.dsn, **{"autocommit": True, **words}))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for connection in opened:
        connection.close()


def fetched(connection: psycopg.Connection, words: str = "all", name: str = "s", timeout: str = "0s") -> list[tuple]:
    return connection.execute(f"FETCH {words} FROM SUBSCRIPTION {name} WITH (timeout = '{timeout}')").fetchall()


def lag(connection: psycopg.Connection) -> tuple:
    return connection.execute("SHOW SUBSCRIPTIONS").fetchall()[0]


def test_columns_snapshot_and_changes(live: Live, connect: Connect) -> None:
    sql = connect()
    created = live.serving.progress.time
    sql.execute("CREATE SUBSCRIPTION s FROM v")
    cursor = sql.execute("FETCH ALL FROM SUBSCRIPTION s")
    assert [(c.name, c.type_code) for c in cursor.description or ()] == [
        ("mz_timestamp", 1700), ("mz_diff", 20), ("id", 20), ("name", 25), ("amount", 701),
    ]  # fmt: skip
    assert sorted(cursor.fetchall()) == [(Decimal(created), 1, *row) for row in ROWS]
    assert cursor.statusmessage == "FETCH 4"
    assert fetched(sql) == []
    changed = live.tick([(NEW, 1), (ROWS[0], -1)])
    assert sorted(fetched(sql), key=lambda row: row[1]) == [(Decimal(changed), -1, *ROWS[0]), (Decimal(changed), 1, *NEW)]


def test_it_continues_after_the_acknowledged_position(live: Live, connect: Connect) -> None:
    one = connect()
    one.execute("CREATE SUBSCRIPTION s FROM v")
    first = fetched(one)
    second = live.tick([(NEW, 1)])
    assert [row[0] for row in fetched(one)] == [second]
    assert len(fetched(connect())) == 5  # nothing is acknowledged yet
    assert one.execute("ACKNOWLEDGE s UP TO %s", [first[0][0]]).statusmessage == "ACKNOWLEDGE"
    assert fetched(connect()) == [(Decimal(second), 1, *NEW)]
    one.execute(f"ACKNOWLEDGE s UP TO {second}")
    assert fetched(connect()) == []
    one.execute(f"ACKNOWLEDGE s UP TO {first[0][0]}")  # the position never moves backwards
    assert fetched(connect()) == []
    third = live.tick([(NEW, -1)])
    assert fetched(connect()) == fetched(one) == [(Decimal(third), -1, *NEW)]


def test_rows_that_another_session_acknowledged_are_not_returned(live: Live, connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    assert fetched(one) == []
    last = [live.tick([((key, "", 0.0), 1)]) for key in range(20, 25)][-1]
    assert len(fetched(other)) == 5
    other.execute(f"ACKNOWLEDGE s UP TO {last}")
    assert fetched(one) == []


def test_fetch_returns_complete_times(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    times = [live.tick([((100 * tick + key, "", 0.0), 1) for key in range(size)]) for tick, size in enumerate((2, 3, 7, 1), 1)]
    assert [row[0] for row in fetched(sql, "4")] == [times[0]] * 2
    assert [row[0] for row in fetched(sql, "4")] == [times[1]] * 3
    assert [row[0] for row in fetched(sql, "4")] == [times[2]] * 7  # the rows of one time are never split
    assert [row[0] for row in fetched(sql, "4")] == [times[3]]
    assert sql.execute("FETCH 0 FROM SUBSCRIPTION s").statusmessage == "FETCH 0"


def test_fetch_timing(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    timer = threading.Timer(0.4, lambda: live.tick([(NEW, 1)]))
    timer.start()
    start = time.monotonic()
    assert len(sql.execute("FETCH 10 FROM SUBSCRIPTION s").fetchall()) == 1
    assert time.monotonic() - start > 0.3
    start = time.monotonic()
    assert fetched(sql, "1", timeout="500ms") == []
    assert time.monotonic() - start > 0.45


def test_progress_rows_may_be_acknowledged(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (progress, snapshot = false)")
    changed = live.tick([(NEW, 1)])
    assert fetched(sql)[-2:] == [(Decimal(changed), False, 1, *NEW), (Decimal(changed), True, None, None, None, None)]
    sql.execute(f"ACKNOWLEDGE s UP TO {changed}")
    again = live.tick([(NEW, -1)])
    assert [row for row in fetched(connect()) if not row[1]] == [(Decimal(again), False, -1, *NEW)]


def test_a_transaction_takes_or_gives_back(live: Live, connect: Connect) -> None:
    connect().execute("CREATE SUBSCRIPTION s FROM v")
    sql = connect(autocommit=False)
    rows = fetched(sql)
    sql.execute("ACKNOWLEDGE s UP TO %s", [rows[0][0]])
    sql.rollback()
    assert sorted(fetched(sql)) == sorted(rows)
    sql.execute("ACKNOWLEDGE s UP TO %s", [rows[0][0]])
    assert lag(sql)[2] is None  # not before COMMIT
    sql.commit()
    assert lag(sql)[2] == rows[0][0]
    sql.rollback()
    assert fetched(sql) == []
    with pytest.raises(psycopg.errors.SyntaxError):
        sql.execute("nonsense")
    sql.rollback()
    with pytest.raises(psycopg.errors.DivisionByZero):
        connect().execute(f"ACKNOWLEDGE s UP TO {live.tick([(NEW, 1)])}; SELECT 1 / 0")
    assert fetched(sql) == [(Decimal(live.serving.progress.time), 1, *NEW)]
    sql.execute("SAVEPOINT a")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="behind a savepoint"):
        sql.execute("ACKNOWLEDGE s UP TO 5")


def test_a_dropped_subscription_ends_a_fetch(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    ended: list[BaseException] = []

    def follow() -> None:
        try:
            connect().execute("FETCH 1 FROM SUBSCRIPTION s")
        except psycopg.Error as error:
            ended.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.3)
    sql.execute("DROP SUBSCRIPTION s")
    thread.join(10)
    assert isinstance(ended[0], psycopg.errors.UndefinedObject)
    with pytest.raises(psycopg.errors.UndefinedObject, match='subscription "s" does not exist'):
        fetched(sql)


def test_a_full_disk_acknowledges_nothing(live: Live, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, parts: Iterable[bytes | memoryview]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v")
    first = fetched(sql)
    with monkeypatch.context() as patch:
        patch.setattr("tailgate.lake.host.files.write", full)
        with pytest.raises(psycopg.errors.DiskFull, match="could not write to the data folder: No space left on device"):
            sql.execute(f"ACKNOWLEDGE s UP TO {first[-1][0]}")
    assert fetched(connect()) == first
    sql.execute(f"ACKNOWLEDGE s UP TO {first[-1][0]}")
    assert fetched(connect()) == []


def test_a_client_that_left_is_noticed(live: Live, connect: Connect) -> None:
    connect().execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    client = Client.connect(live.host, live.port, "ann", "shop")
    client.send(Query("FETCH 1 FROM SUBSCRIPTION s"))
    time.sleep(0.3)
    client.close()
    deadline = time.monotonic() + 10
    while client.key[0] in live.gateway.sessions:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_dependencies(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as raised:
        sql.execute("DROP MATERIALIZED VIEW v")
    assert raised.value.diag.message_detail == "subscription s depends on materialized view v"
    sql.execute("DROP MATERIALIZED VIEW v CASCADE")
    assert sql.execute("SHOW SUBSCRIPTIONS").fetchall() == []


@pytest.mark.parametrize(
    ("words", "sqlstate", "message"),
    [
        ("CREATE SUBSCRIPTION t FROM nobody", "42P01", 'relation "nobody" does not exist'),
        ("CREATE SUBSCRIPTION s FROM v", "42P07", 'relation "s" already exists'),
        ("CREATE SUBSCRIPTION t FROM v WITH (retention = '8 days')", "22023", 'invalid RETENTION: "8 days"'),
        ("CREATE SUBSCRIPTION t FROM v WITH (retention = 'soon')", "22007", "invalid input syntax for type interval"),
        ("CREATE SUBSCRIPTION t FROM v WITH (speed = 5)", "22023", "unrecognized CREATE SUBSCRIPTION option: speed"),
        ("CREATE SUBSCRIPTION t CONNECTION 'x' PUBLICATION p", "0A000", "CREATE SUBSCRIPTION … CONNECTION is not supported"),
        ("DROP SUBSCRIPTION t", "42704", 'subscription "t" does not exist'),
        ("DROP SUBSCRIPTION v", "42809", '"v" is not a subscription'),
        ("FETCH 1 FROM SUBSCRIPTION t", "42704", 'subscription "t" does not exist'),
        ("FETCH 1 FROM SUBSCRIPTION v", "42809", '"v" is not a subscription'),
        ("FETCH 1 FROM SUBSCRIPTION s WITH (timeout = '25h')", "22023", "timeout out of range"),
        ("FETCH BACKWARD 2 FROM SUBSCRIPTION s", "0A000", "FETCH backward in a subscription is not supported"),
        ("MOVE 1 FROM SUBSCRIPTION s", "0A000", "MOVE in a subscription is not supported"),
        ("ACKNOWLEDGE s UP TO 99999999999999", "22023", "time 99999999999999 has not come yet"),
        ("ACKNOWLEDGE s UP TO -1", "22000", "AS OF or UP TO should be castable"),
        ("ACKNOWLEDGE s UP TO NULL", "22000", "AS OF or UP TO should be castable"),
        ("TAIL s", "42P01", 'relation "s" does not exist'),
        ("SELECT * FROM s", "42P01", 'relation "s" does not exist'),
    ],
)
def test_messages(connect: Connect, words: str, sqlstate: str, message: str) -> None:
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v")
    with pytest.raises(psycopg.Error) as raised:
        sql.execute(words)
    assert raised.value.sqlstate == sqlstate
    assert message in str(raised.value)


def test_rights(live: Live, connect: Connect) -> None:
    sql = connect(user="tailgate")
    sql.execute("CREATE ROLE reader LOGIN PASSWORD 'r'; CREATE ROLE other LOGIN PASSWORD 'o'")
    mine = connect(user="reader", password="r")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mine.execute("CREATE SUBSCRIPTION s FROM v")
    sql.execute("GRANT CREATE ON SCHEMA public TO reader; GRANT SELECT ON v TO reader, other")
    mine.execute("CREATE SUBSCRIPTION s FROM v")
    assert len(fetched(mine)) == 4
    other = connect(user="other", password="o")
    for words in ("FETCH 1 FROM SUBSCRIPTION s", "ACKNOWLEDGE s UP TO 5", "DROP SUBSCRIPTION s"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of subscription s"):
            other.execute(words)
    sql.execute("REVOKE SELECT ON v FROM reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for materialized view v"):
        fetched(mine)


def test_a_subscription_waits_for_a_failing_view(live: Live, connect: Connect) -> None:
    sql, model = connect(), live.model
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    before = live.tick([(NEW, 1)])
    error = ("22012", "division by zero")
    model.tick({live.v.id: [(NEW, -1)], live.v.errors: [(error, 1)]})
    live.tick([((11, "", 0.0), 1)])
    assert fetched(sql, timeout="100ms") == [(Decimal(before), 1, *NEW)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        fetched(sql, timeout="100ms")
    sql.execute(f"ACKNOWLEDGE s UP TO {before}")
    whole = model.tick({live.v.errors: [(error, -1)]})
    live.call(live.serving.progress.wait(whole - 1, 10))
    assert sorted(fetched(sql)) == [(Decimal(whole), -1, *NEW), (Decimal(whole), 1, 11, "", 0.0)]


def test_a_quiet_view_holds_nothing_back(live: Live, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "ADVANCE_S", 0.0)
    sql = connect()
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (snapshot = false)")
    fetched(sql)
    for _ in range(3):
        live.tick()
    assert fetched(sql) == []
    assert lag(sql)[2] == live.serving.progress.time
    live.tick([(NEW, 1)])
    assert len(fetched(sql)) == 1
    live.tick()
    assert fetched(sql) == []
    assert len(fetched(connect())) == 1  # rows that were fetched but not acknowledged stay


def test_since_waits_within_the_retention(live: Live, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    monkeypatch.setattr(checkpoints, "RECENT_MS", 0)
    monkeypatch.setattr(checkpoints, "SPACING_MS", 0)
    sql, lake = connect(), live.model.lake
    monkeypatch.setattr(segments, "ENTRIES", 3)
    monkeypatch.setattr(retention, "ENTRIES", 3)
    monkeypatch.setattr(ages, "STEP_MAX_MS", 86_400_000)
    follower = Follower(lake, live.model.writer.epoch)

    def sweep(minutes: int) -> None:
        """Runs the sweep of the log as if that many minutes had passed since the last one."""
        monkeypatch.setattr(ages, "now", lambda now=ages.now: now() + minutes * 60_000)
        live.tick()
        retention.sweep(live.model.writer)

    def ticks(keys: range) -> None:
        for key in keys:
            live.tick([((key, "", 0.0), 1)])
            follower.round()

    ticks(range(20, 32))
    sql.execute("CREATE SUBSCRIPTION s FROM v WITH (retention = '1 hour')")
    created = live.serving.progress.time
    ticks(range(32, 44))
    sweep(minutes=50)
    assert lake.log.first() > 1
    assert reading.since(lake) <= created
    assert [lag(sql)[i] for i in (0, 1, 2, 4, 5, 6)] == ["s", "v", None, 3_600_000, "running", None]
    listed = sql.execute("SELECT schema, name, acknowledged, status, lag_ms >= 0 FROM tailgate.subscriptions").fetchall()
    assert listed == [("public", "s", None, "running", True)]
    sweep(minutes=11)
    live.tick([(NEW, 1)])
    follower.round()
    sweep(minutes=0)
    assert reading.since(lake) > created
    assert lag(sql)[5] == "stopped"
    assert "it has read nothing for 1:0" in lag(sql)[6]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has fallen behind") as raised:
        fetched(sql)
    assert "ACKNOWLEDGE … UP TO t" in (raised.value.diag.message_hint or "")
    sql.execute(f"ACKNOWLEDGE s UP TO {live.serving.progress.time}")
    assert lag(sql)[5] == "running"
    last = live.tick([(NEW, -1)])
    assert fetched(sql) == [(Decimal(last), -1, *NEW)]


def test_places_of_dropped_subscriptions_go(live: Live, connect: Connect) -> None:
    sql, lake = connect(), live.model.lake
    sql.execute("CREATE SUBSCRIPTION s FROM v; CREATE SUBSCRIPTION t FROM v")
    sql.execute("DROP SUBSCRIPTION s")
    assert len(holds.holds(lake)) == 2
    subscriptions.release_dropped(lake, holds.readers(lake))
    (hold,) = holds.holds(lake)
    assert hold.reader == subscriptions.reader(next(i.id for i in lake.catalog().items.values() if i.name == "t"))


def test_names_follow_renamed_objects(live: Live, connect: Connect) -> None:
    sql = connect()
    sql.execute("CREATE MATERIALIZED VIEW w AS SELECT id FROM v")
    sql.execute("CREATE SUBSCRIPTION s FROM w WITH (snapshot = false)")
    sql.execute("ALTER SUBSCRIPTION s RENAME TO t")
    sql.execute("ALTER MATERIALIZED VIEW w RENAME TO x")
    assert sql.execute("SHOW CREATE SUBSCRIPTION t").fetchall() == [("t", "CREATE SUBSCRIPTION t FROM x WITH (snapshot = false)")]
    assert fetched(sql, name="t") == []
