"""Tests look-ups in an index from CREATE INDEX while rows change.

The bytes are those of DuckDB's answers, for prepared statements, plain text and templates.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.gateway.answers import lookups
from tailgate.gateway.answers.index import Index, NetChanges
from tailgate.gateway.serving.lookup_plans import AccessPath
from tailgate.lake.catalog import Item
from tailgate.lake.types import DATE, FLOAT8, INT4, INT8, TEXT, WEIGHT, Field, Type
from tailgate.sql.statements import CreateIndex, parse
from tailgate.sql.tables.indexes import create_index
from tests.wire.live import Live

COLUMNS = {"id": INT8, "city": TEXT, "n": INT4, "x": FLOAT8, "tags": TEXT.array(), "at": DATE, "price": Type("numeric", (8, 2))}
CITIES = ["rome", "it's", "", None, "oslo"]


def indexed(live: Live, text: str) -> Item:
    statement = parse(text)
    assert isinstance(statement, CreateIndex)
    item, _ = create_index(statement, live.model.writer.catalog)
    live.model.put(item)
    return item


def index_of(live: Live, columns: tuple[int, ...]) -> Index | None:
    return next((i for w, i in live.gateway.answers.lookups._indexes.items() if w.columns == columns and w.declared), None)


def wire(connection: psycopg.Connection[Any], text: str) -> Counter[tuple[bytes | None, ...]]:
    """Returns the rows as raw bytes."""
    result = connection.pgconn.exec_(text.encode())
    assert result.error_message == b"", result.error_message
    return Counter(tuple(result.get_value(i, j) for j in range(result.nfields)) for i in range(result.ntuples))


def made_row(chance: random.Random, id: int) -> tuple[Any, ...]:
    x = chance.choice([1.5, 0.0, float("inf"), float("nan")])
    return (id, chance.choice(CITIES), chance.randrange(4), x, ("a", None)[: chance.randrange(3)], chance.randrange(3), chance.randrange(3))


@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without"])
def test_all_lanes_agree(live: Live, seed: int, keyed: bool) -> None:
    chance = random.Random(seed)
    item = live.model.create("w", COLUMNS, (0,) if keyed else None)
    indexed(live, "CREATE INDEX ON w (city)")
    indexed(live, "CREATE INDEX ON w (n DESC, city)")
    rows = [made_row(chance, i if keyed else i % 5) for i in range(200)]
    live.model.tick({item.id: [(row, 1) for row in rows]})
    live.tick()
    texts = [f"SELECT {{}} FROM w WHERE city = {c}" for c in ("'rome'", "'it''s'", "''", "'nowhere'")]
    texts += [f"SELECT {{}} FROM w WHERE n = {n} AND city = 'oslo'" for n in (0, 3, 9)]
    texts += ["SELECT {} FROM w WHERE city IN ('rome', 'oslo', 'rome', NULL)", "SELECT {} FROM w WHERE city = 'rome' AND id = 3"]
    texts += ["SELECT {} FROM w WHERE n IN (1, 2) AND city IN ('', 'oslo')", "SELECT {} FROM w WHERE city = 'rome' AND at = '1970-01-02'"]
    column_lists = ["*", "id, x", "tags, price, at"]
    with psycopg.connect(live.dsn, autocommit=True) as ours, psycopg.connect(live.dsn, autocommit=True) as duckdb:
        ours.prepare_threshold = 0
        for _ in range(25):
            for text in chance.sample(texts, 4):
                columns = chance.choice(column_lists)
                expected = wire(duckdb, f"{text.format(columns)} OR false")
                assert wire(ours, text.format(columns)) == expected, text
                got = ours.execute(text.format(columns)).fetchall()  # type: ignore[call-overload]
                assert len(got) == sum(expected.values())
            changes = []
            for row in chance.sample(rows, 6):
                rows.remove(row)
                changes.append((row, -1))
            for row in list(changes):
                if chance.random() < 0.8:
                    rows.append(made_row(chance, row[0][0]))
                    changes.append((rows[-1], 1))
            live.model.tick({item.id: changes})
            live.tick()
        first, second = index_of(live, (1,)), index_of(live, (2, 1))
        assert first is not None
        assert second is not None
        deadline = time.monotonic() + 10
        while first.time < live.serving.progress.time and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sum(len(first.find((c.encode(),), 10**6)) for c in CITIES if c is not None) == sum(row[1] is not None for row in rows)
        # really by the index: DuckDB is not asked any more
        before = first.hits
        live.serving.queries.run = None  # type: ignore[method-assign,assignment]
        try:
            ids = wire(ours, "SELECT id FROM w WHERE city = 'rome'")
            assert sum(ids.values()) == sum(row[1] == "rome" for row in rows)
            assert ours.execute("SELECT id FROM w WHERE city = %s AND n = %s", ("oslo", 1)).fetchall() is not None
        finally:
            del live.serving.queries.run  # type: ignore[attr-defined]
        assert first.hits > before


def test_many_rows_of_one_value_are_not_the_event_loops(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "ANSWER_ROWS_MAX", 3)
    item = live.model.create("w", {"a": INT4, "b": INT4}, None)
    indexed(live, "CREATE INDEX ON w (a)")
    live.model.tick({item.id: [((1, b), 1) for b in range(4)] + [((2, 7), 3)]})
    live.tick()
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for _ in range(30):
            assert wire(connection, "SELECT b FROM w WHERE a = 1") == Counter({(b"%d" % b,): 1 for b in range(4)})
            assert wire(connection, "SELECT b FROM w WHERE a = 2") == Counter({(b"7",): 3})
            live.tick()


def test_memory_is_bounded(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.gateway.answers.lookups, "_most", 3_000)
    item = live.model.create("w", {"a": INT4, "b": INT4}, None)
    indexed(live, "CREATE INDEX ON w (a)")
    live.model.tick({item.id: [((1, b), 1) for b in range(11)]})
    live.tick()
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        for n in range(30):
            assert wire(connection, f"SELECT b FROM w WHERE a = {n + 2}") == Counter()
    assert index_of(live, (0,)) is None


def test_portals_take_rows_in_pieces(live: Live) -> None:
    item = live.model.create("w", {"a": INT4, "b": INT4}, None)
    indexed(live, "CREATE INDEX ON w (a)")
    live.model.tick({item.id: [((1, b), 1) for b in range(10)]})
    live.tick()
    with psycopg.connect(live.dsn) as connection:
        for _ in range(5):
            connection.execute("SELECT b FROM w WHERE a = 1")
        with connection.cursor("c") as cursor:
            cursor.execute("SELECT b FROM w WHERE a = 1")
            assert sorted(cursor.fetchmany(4) + cursor.fetchall()) == [(b,) for b in range(10)]


@pytest.mark.parametrize(("rows", "key", "turns", "first"), [(1_100, (0,), 0, 0), (5_000, (0,), 3, 3), (5_000, None, 3, 20)])
def test_an_index_applies_the_changes_of_a_usual_tick_at_once(rows: int, key: tuple[int, ...] | None, turns: int, first: int) -> None:
    """Look-ups wait for the index: other tasks have a turn only within larger ticks, and more often within the rows that fill it."""
    index = Index((Field("id", INT8),), AccessPath(16384, (0,), key, 1))
    changes = pa.table({"id": pa.array(range(rows), pa.int64()), WEIGHT: pa.array([1] * rows)})
    for moment, expected in ((1, first), (2, turns)):
        assert len(list(index.apply(moment, moment, NetChanges(changes)))) == expected
        assert (index.time, list(index.find((7,), 1))) == (moment, [(7,)])
