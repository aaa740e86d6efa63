"""Windows of ksqlDB that close: GRACE PERIOD, RETENTION and EMIT FINAL."""

from __future__ import annotations

import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tests.engine.ddl.ksqldb_items import declared, derived

STREAMS = (
    "CREATE STREAM a (id VARCHAR KEY, x INT) WITH (kafka_topic = 'a', value_format = 'json')",
    "CREATE STREAM b (id VARCHAR KEY, y INT) WITH (kafka_topic = 'b', value_format = 'json')",
    "CREATE TABLE t (id VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 't', value_format = 'json')",
)
START = "CAST(extract(epoch FROM window_start) * 1000 AS bigint)"
ROWS = "(SELECT *, _arrival FROM a WHERE id IS NOT NULL AND (x > 1))"


@pytest.fixture
def streams() -> Catalog:
    catalog = Catalog()
    for text in STREAMS:
        catalog = declared(text, catalog)
    return catalog


def intervals(*milliseconds: int) -> str:
    return ", ".join(f"interval '{n} milliseconds'" for n in milliseconds)


@pytest.mark.parametrize(
    ("window", "emit", "text"),
    [
        ("TUMBLING (SIZE 1 SECOND)", "CHANGES", f"tumble({ROWS}, rowtime, {intervals(1000, 86_400_000, 86_401_000)})"),
        (
            "TUMBLING (SIZE 1 SECOND, RETENTION 1 DAY, GRACE PERIOD 0 DAYS)",
            "CHANGES",
            f"tumble({ROWS}, rowtime, {intervals(1000, 0, 86_400_000)})",
        ),
        (
            "TUMBLING (SIZE 1 SECOND, RETENTION 1 MINUTE, GRACE PERIOD 59 SECONDS)",
            "CHANGES",
            f"tumble({ROWS}, rowtime, {intervals(1000, 59_000, 60_000)})",
        ),
        (
            "TUMBLING (SIZE 1 SECOND, GRACE PERIOD 5 SECONDS)",
            "FINAL",
            f"tumble({ROWS}, rowtime, {intervals(1000, 5000, 86_400_000)}, 'last')",
        ),
        (
            "HOPPING (SIZE 4 SECONDS, ADVANCE BY 1 SECOND, GRACE PERIOD 1 MINUTE)",
            "FINAL",
            f"hop({ROWS}, rowtime, {intervals(1000, 4000, 60_000, 86_400_000)}, 'last')",
        ),
        ("SESSION (1 SECOND, RETENTION 2 DAYS)", "CHANGES", f"session({ROWS}, rowtime, {intervals(1000, 86_400_000, 172_800_000)}, id)"),
        (
            "SESSION (1 SECOND, GRACE PERIOD 5 SECONDS)",
            "FINAL",
            f"session({ROWS}, rowtime, {intervals(1000, 5000, 86_400_000)}, 'last', id)",
        ),
    ],
)
def test_windows_close(window: str, emit: str, text: str, streams: Catalog) -> None:
    query = f"SELECT id, count(*) AS n FROM a WINDOW {window} WHERE x > 1 GROUP BY id EMIT {emit}"
    view, sink, _ = derived(f"CREATE TABLE w AS {query}", streams)
    since = f" WHERE {START} >= 0" if window.startswith("HOPPING") else ""  # none begins before 1970
    assert f"FROM {text}{since} GROUP BY" in view.query
    assert (sink.envelope, sink.message_key[0] if sink.message_key else None) == ("upsert", 0)
    assert sink.settings["topic.cleanup.policy"] == "compact,delete"


@pytest.mark.parametrize(
    ("properties", "retention", "expected"),
    [
        ("", ", RETENTION 30 DAYS", 30 * 86_400_000),
        ("WITH (retention_ms = 60000)", ", RETENTION 30 DAYS", 30 * 86_400_000),
        ("WITH (retention_ms = 60000)", ", RETENTION 2 SECONDS, GRACE PERIOD 0 DAYS", 60_000),
        ("WITH (retention_ms = 60000)", "", 60_000),
        ("", "", None),
    ],
)
def test_a_topic_keeps_windows_for_their_retention(properties: str, retention: str, expected: int | None, streams: Catalog) -> None:
    """The larger one of RETENTION_MS and RETENTION, because the topic deletes old records."""
    query = f"SELECT id, count(*) AS n FROM a WINDOW TUMBLING (SIZE 1 SECOND{retention}) GROUP BY id EMIT CHANGES"
    _, sink, _ = derived(f"CREATE TABLE w {properties} AS {query}", streams)
    assert sink.settings.get("retention_ms") == expected


def test_windows_of_a_join(streams: Catalog) -> None:
    """The columns of the join have names with their sources."""
    query = "SELECT a.id AS k, sum(y) AS n, max(b.rowtime) AS t, latest_by_offset(x) AS l FROM a JOIN b WITHIN 1 SECOND ON a.id = b.id"
    view, _, _ = derived(f"CREATE TABLE w AS {query} WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY a.id EMIT CHANGES", streams)
    assert 'FROM tumble((SELECT a.id AS "a.id", a.x AS "a.x", a.rowtime AS "a.rowtime", ' in view.query
    position = 'greatest(a.rowtime, b.rowtime) AS rowtime, 0 AS rowpartition, "join 1".number AS rowoffset'
    assert f", {position}, greatest(a._arrival, b._arrival) AS _arrival FROM a AS a INNER" in view.query
    assert view.query.startswith('SELECT "a.id" AS k, ')
    query = "SELECT t.id AS k, count(*) AS n FROM a JOIN t ON a.id = t.id"
    view, _, _ = derived(f"CREATE TABLE w AS {query} WINDOW SESSION (1 MINUTE) GROUP BY t.id EMIT CHANGES", streams)
    assert f'rowtime, {intervals(60_000, 86_400_000, 86_460_000)}, "t.id") GROUP BY' in view.query


@pytest.mark.parametrize(
    ("source", "order"),
    [
        ("a GROUP BY id", "_arrival DESC, rowpartition DESC, rowoffset DESC"),
        ("a WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id, x", "_arrival DESC, rowpartition DESC, rowoffset DESC"),
        ("a GROUP BY x", "_arrival DESC, rowpartition DESC, rowoffset DESC"),
        ("a JOIN t ON a.id = t.id GROUP BY a.id", "a._arrival DESC, a.rowpartition DESC, a.rowoffset DESC"),
    ],
)
def test_records_are_in_the_order_of_their_arrival(source: str, order: str, streams: Catalog) -> None:
    keys = source.partition("GROUP BY ")[2]
    query = f"SELECT {keys}, latest_by_offset(x + 1) AS l FROM {source} EMIT CHANGES"
    view, _, _ = derived(f"CREATE TABLE w WITH (key_format = 'json') AS {query}", streams)
    assert f" ORDER BY {order})" in view.query


@pytest.mark.parametrize(
    ("query", "sqlstate", "message"),
    [
        ("SELECT id, count(*) AS n FROM a GROUP BY id EMIT FINAL", "42809", "EMIT FINAL is only supported for windowed aggregations."),
        (
            "SELECT id, count(*) AS n FROM a WINDOW TUMBLING (SIZE 2 DAYS, RETENTION 1 DAY) GROUP BY id EMIT CHANGES",
            "22023",
            "must be no smaller than its window size plus the grace period",
        ),
        (
            "SELECT id, count(*) AS n FROM a WINDOW TUMBLING (SIZE 1 DAY) WHERE windowstart > 1 GROUP BY id EMIT CHANGES",
            "42703",
            "WINDOWSTART",
        ),
    ],
)
def test_wrong_windows(query: str, sqlstate: str, message: str, streams: Catalog) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        derived(f"CREATE TABLE w AS {query}", streams)
    assert error.value.sqlstate == sqlstate
