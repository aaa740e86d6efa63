"""Tables with numerics of any size: views over them, their history, other readers, and restarts of the engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable

from tailgate.lake.tables.stored_relations import table_name
from testing.engine_process import until
from tests.following import Tail
from tests.statements.conftest import World

pytestmark = pytest.mark.spark

EDGES = [
    "1.10",
    "1.1",
    "0",
    "0.00",
    "-0.5",
    "12345.6789",
    "9" * 20,
    "-" + "9" * 20 + ".9999",
    "0." + "0" * 17 + "1",
    "0." + "3" * 40,
    "1e-30",
]


SPECIAL = ["NaN", "Infinity", "1" + "0" * 50, "-1e70"]


def _numbers(random_: random.Random, count: int) -> list[str]:
    """Returns numbers, some with more than 38 digits."""
    out = []
    for _ in range(count):
        before, after = random_.randint(0, 18), random_.choice([0, 0, 2, 5, 16, 17, 40])
        digits = "".join(random_.choices("0123456789", k=before + after + 1))
        out.append(
            random_.choice(["", "-"]) + digits[:before].lstrip("0").rjust(1, "0") + "." * bool(after) + digits[before : before + after]
        )
    return out


def _text(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _fill(connection: psycopg.Connection, numbers: Sequence[str | None]) -> None:
    connection.execute("CREATE TABLE n (id int PRIMARY KEY, a numeric, c numeric(12, 4))")
    with connection.cursor().copy("COPY n FROM STDIN") as copy:
        for id, number in enumerate(numbers):
            copy.write_row((id, number, id % 7))


def test_views_of_them_are_postgres(world: World, sql: psycopg.Connection, postgres: str, seed: int) -> None:
    numbers = [*EDGES, *SPECIAL, None, *_numbers(random.Random(seed), 300)]
    views = {
        "v": "SELECT id, a, a + 1 AS b, a * c AS p, a / 7 AS q, c, l, l[1] AS f FROM n",
        "s": "SELECT id % 3 AS k, sum(a) AS s, avg(a) AS v, count(DISTINCT a) AS n, max(c + a) AS m, rank(5) WITHIN GROUP (ORDER BY a) AS r"
        " FROM n WHERE a < 1e60 GROUP BY 1",
        "e": "SELECT id % 3 AS k, array_agg(a ORDER BY a, a::text) AS a, ARRAY[max(c), 1] AS b FROM n GROUP BY 1",
        "g": "SELECT a + 0.00000 AS a, count(*) AS n FROM n WHERE id % 4 = 1 GROUP BY 1",
    }
    read = {
        name: f"SELECT * FROM (SELECT * FROM {{}}) AS q ORDER BY {'id' if name == 'v' else 'a' if name == 'g' else 'k'}" for name in views
    }
    with psycopg.connect(postgres, autocommit=True) as oracle:
        oracle.execute("DROP TABLE IF EXISTS n")
        for connection in (sql, oracle):
            _fill(connection, numbers)
            connection.execute("ALTER TABLE n ADD COLUMN l numeric[]")
            connection.execute("UPDATE n SET l = ARRAY[a, 1.50]")
        for name, query in views.items():
            sql.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[call-overload]
        for change in (
            "SELECT 1",
            "UPDATE n SET a = a / 3, l = l || a WHERE id % 2 = 0",
            "DELETE FROM n WHERE id % 5 = 0",
            "INSERT INTO n VALUES (5, 7.70, 1)",
        ):
            for connection in (sql, oracle):
                connection.execute(change)  # type: ignore[call-overload]
            for name, query in views.items():
                expected = _shown(oracle, read[name].format(f"({query}) AS t"))
                assert _shown(sql, read[name].format(name)) == expected, (name, change)
        world.engine.stop()
        world.engine.start()
        until(lambda: sql.execute("SELECT count(*) FROM g").fetchone() is not None)
        for connection in (sql, oracle):
            connection.execute("UPDATE n SET a = a * 1.0 WHERE id % 3 = 0")
        for name, query in views.items():
            assert _shown(sql, read[name].format(name)) == _shown(oracle, read[name].format(f"({query}) AS t")), name
        for number in [Decimal("7.7"), Decimal("NaN"), Decimal(10) ** 50, Decimal("-0.5")]:
            looked_up = "SELECT a, n FROM {} WHERE a = %s"  # a key of the view
            expected = _shown(oracle, looked_up.format(f"({views['g']}) AS q".replace("%", "%%")), number)
            assert _shown(sql, looked_up.format("g"), number) == expected, number
        oracle.execute("DROP TABLE n")
    for name, key in (("v", "id"), ("e", "k")):
        item = next(item for item in world.lake.catalog().visible if item.name == name)
        stored = _shown(sql, f"SELECT a FROM {name} ORDER BY {key}")
        until(lambda item=item, key=key, stored=stored: _column(world, item.id, key) == [a for (a,) in stored])  # type: ignore[misc]


def _shown(connection: psycopg.Connection, query: str, *parameters: Decimal) -> list[tuple[str | None, ...]]:
    """Returns the rows of a query with numbers as text, because 1.0 equals 1.00."""
    rows = connection.execute(query, parameters or None).fetchall()  # type: ignore[call-overload]
    return [tuple(_plain(v) for v in row) for row in rows]


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, list) else _text(value) if isinstance(value, Decimal) else value


def _column(world: World, item: int, key: str) -> list[Any]:
    """Returns the texts of column `a` in the Delta table of a relation, sorted by a key."""
    table = DeltaTable(world.lake.store.location(table_name(item))).to_pyarrow_table().sort_by(key)
    return table["a"].to_pylist()


@pytest.mark.parametrize("binary", [False, True])
def test_parameters_of_any_size(world: World, sql: psycopg.Connection, binary: bool) -> None:
    _fill(sql, [])
    values = [Decimal("1.10"), Decimal("NaN"), Decimal(10) ** 50, Decimal(1).scaleb(-60), Decimal("-Infinity"), Decimal("-7.000"), None]
    with world.connect() as connection, connection.cursor(binary=binary) as cursor:
        for id, value in enumerate(values):
            place = "%b" if binary else "%t"
            cursor.execute(f"INSERT INTO n VALUES ({place}, {place}::numeric, 1)", (id, value))
            shown = cursor.execute(f"SELECT {place}::numeric, {place} + 0", (value, value), prepare=True).fetchone()
            assert shown is not None
            assert [_text(v) for v in shown] == [_text(value)] * 2
            row = cursor.execute(f"SELECT a FROM n WHERE id = {place}", (id,)).fetchone()
            assert row is not None
            assert _text(row[0]) == _text(value)
            cursor.execute(f"UPDATE n SET c = {place} WHERE a = {place}", (Decimal("1.23456"), value))
        assert cursor.rowcount == 0  # a = NULL
    assert sql.execute("SELECT DISTINCT c FROM n WHERE a IS NOT NULL").fetchall() == [(Decimal("1.2346"),)]


def test_history_followers_and_other_readers(world: World, sql: psycopg.Connection) -> None:
    texts: list[str | None] = ["1.10", "NaN", "1" + "0" * 50, "0." + "0" * 50 + "1", "-2", None]
    _fill(sql, texts)
    before = sql.execute("SELECT mz_now()").fetchone()
    assert before is not None
    query = "SELECT a::text FROM n ORDER BY id"
    follower = Tail("n")
    with psycopg.connect(world.served.dsn) as connection:
        follower.open(connection)
        until(lambda: _followed(follower, connection) == {(id, text) for id, text in enumerate(texts)})
        sql.execute("UPDATE n SET a = 2.000 WHERE id = 4")
        texts[4] = "2.000"
        until(lambda: _followed(follower, connection) == {(id, text) for id, text in enumerate(texts)})
    assert [t for (t,) in sql.execute(query).fetchall()] == texts
    ordered = f"SUBSCRIBE n AS OF {before[0]} WITHIN TIMESTAMP ORDER BY a UP TO {before[0] + 1}"
    shown = [_text(row[3]) for row in sql.execute(ordered).fetchall()]  # type: ignore[call-overload]
    assert shown == ["-2", texts[3], "1.10", texts[2], "NaN", None]
    keyed = f"SUBSCRIBE n ENVELOPE UPSERT (KEY (a)) WITH (SNAPSHOT = false) AS OF {before[0]} UP TO {before[0] + 86_400_000}"
    with psycopg.connect(world.served.dsn) as connection:
        connection.execute(f"DECLARE c CURSOR FOR {keyed}")  # type: ignore[call-overload]
        changes = connection.execute("FETCH 2 c WITH (timeout = '20s')").fetchall()
    assert [(row[1], _text(row[2])) for row in changes] == [("delete", "-2"), ("upsert", "2.000")]
    relation = next(item.id for item in world.lake.catalog().visible if item.name == "n")
    world.engine.stop()
    world.engine.start()
    until(lambda: [t for (t,) in sql.execute(query).fetchall()] == texts)
    table = DeltaTable(world.lake.store.location(table_name(relation))).to_pyarrow_table().sort_by("id")
    assert table["a"].to_pylist() == texts
    sql.execute("UPDATE n SET a = a + 1 WHERE id = 0")
    assert sql.execute("SELECT a::text FROM n WHERE id = 0").fetchone() == ("2.10",)
    past = sql.execute(f"SELECT a::text FROM n ORDER BY id AS OF {before[0]}").fetchall()
    assert [t for (t,) in past] == [*texts[:4], "-2", None]


def _followed(follower: Tail, connection: psycopg.Connection) -> set[tuple[int, str | None]]:
    follower.fetch(connection)
    return {(row[0], _text(row[1])) for row in follower.rows}


def test_views_of_declared_ones_with_more_than_38_digits(sql: psycopg.Connection, postgres: str) -> None:
    query = (
        "SELECT id, a, a * 2 AS twice, b::numeric(60, 2) AS b, sum(b) OVER () AS total, c::numeric(78, 0) AS c,"
        " d::text::numeric(3, -2) AS d FROM wide"
    )
    with psycopg.connect(postgres, autocommit=True) as oracle:
        for connection in (sql, oracle):
            connection.execute("CREATE TABLE wide (id int PRIMARY KEY, a numeric(78, 0), b numeric(50, 20), c numeric(10, 3), d int)")
            connection.execute("INSERT INTO wide VALUES (1, 1e77, 1.23456, 7.5, 1250), (2, 'NaN', 1e29, NULL, 49), (3, NULL, -1, 2, -99)")
        sql.execute(f"CREATE MATERIALIZED VIEW declared AS {query}")  # type: ignore[call-overload]
        for change in ("SELECT 1", "UPDATE wide SET a = 2.5, b = b / 3 WHERE id = 1", "DELETE FROM wide WHERE id = 2"):
            for connection in (sql, oracle):
                connection.execute(change)  # type: ignore[call-overload]
            expected = _shown(oracle, f"{query} ORDER BY id")
            assert _shown(sql, "SELECT * FROM declared ORDER BY id") == expected, change
        described = "SELECT attname, atttypmod FROM pg_attribute WHERE attrelid = 'declared'::regclass AND attnum IN (2, 4) ORDER BY attnum"
        assert sql.execute(described).fetchall() == [("a", (78 << 16) + 4), ("b", (60 << 16 | 2) + 4)]
        oracle.execute("DROP TABLE wide")
    sql.execute("INSERT INTO wide (id, d) VALUES (4, 99950)")
    with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="numeric field overflow"):
        sql.execute("SELECT * FROM declared")
    sql.execute("DELETE FROM wide WHERE id = 4")
    sql.execute("SELECT * FROM declared")
