"""Every recorded Debezium message decodes to the row in its database, in every format.

The rows of PostgreSQL come from a server that runs the same statements. MariaDB's rows are listed
here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from testing.change_data import FIXTURES, Source, messages

pytestmark = pytest.mark.spark

BOUGHT = "user_id bigint, item_id int, n int, quantity smallint, price numeric(12,4), status text"
FORMS = ("avro", "json", "jsonschema")
MONTH = 2_629_800_000_000  # microseconds of Debezium's month: 365.25 / 12 days

# table → key, columns of the JSON source, and the database's rows in stored form
POSTGRES = {
    "users": ("id", "id bigint, email text, name text, is_vip boolean, created_at timestamptz, birthday date", "*"),
    "items": (
        "id",
        (
            "id int, name text, category text, price numeric(7,2), amount numeric, weight float8, tags jsonb, words text[], picture bytea, "
            "code uuid, manual text, updated_at timestamp(3)"
        ),
        "id, name, category::text, price, amount, weight, tags::text, words, picture, code::text, manual, updated_at",
    ),
    "purchases": (
        "user_id, item_id, n",
        BOUGHT + ", bought_at timestamp, ship_time time, wait interval",
        (
            "user_id, item_id, n, quantity, price, status, bought_at, (extract(epoch FROM ship_time) * 1000000)::bigint, "
            "(extract(day FROM wait) * 86400000000 + extract(epoch FROM wait - date_trunc('day', wait)) * 1000000)::bigint"
            f" + extract(month FROM wait)::bigint * {MONTH}"
        ),
    ),
    "notes": ("", "at timestamp(0), body text", "*"),
}
MARIADB_COLUMNS = {
    "users": ("id", "id bigint, email text, name text, is_vip smallint, created_at timestamptz, birthday date"),
    "items": (
        "id",
        "id int, name text, category text, price numeric(7,2), weight float8, tags jsonb, picture bytea, updated_at timestamp(3)",
    ),
    "purchases": (
        "user_id, item_id, n",
        BOUGHT + ", bought_at timestamp(6), ship_time interval, flags bytea",
    ),
    "notes": ("", "at timestamp, body text"),
}


def utc(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


MORNING, NEARLY = datetime(2026, 1, 3, 10, 0, 0, 123000), datetime(1969, 12, 31, 23, 59, 59, 999000)
MARIADB: dict[str, list[tuple[Any, ...]]] = {
    "users": [
        (1, "ada@example.org", "Ada", 1, utc(2026, 1, 2, 3, 4, 5), date(1990, 12, 10)),
        (2, "bob@example.org", "Bob", 1, utc(2026, 1, 2, 3, 4, 6), None),
        (3, "zoe@example.org", "Zoë 🚀", 0, utc(2026, 1, 2, 3, 4, 7), date(2001, 2, 28)),
        (5, "eve@example.org", "Eve", 0, utc(2026, 1, 7), None),
        (40, "dan2@example.org", "Dan II", 0, utc(2026, 1, 6), None),
    ],
    "items": [
        (1, "Streams by hand", "book", Decimal("19.91"), 0.75, '{"lang": "en", "pages": 321}', b"\x00\xff\x10", MORNING),
        (2, "Dice tower", "game", Decimal("45.01"), 1.5, None, None, None),
        (3, "Torque wrench", "tool", Decimal("12345.68"), 2.25, "[]", b"", NEARLY),
    ],
    "purchases": [(5, 1, 1, 1, Decimal("19.9100"), "new", datetime(2026, 1, 8), None, None)],
    "notes": [(datetime(2026, 1, 8), "second"), (datetime(2026, 1, 8), "second")],
}  # fmt: skip


def chosen(tables: dict[str, Any], *fast: str) -> list[Any]:
    """Returns all pairs of a table and a format. Pairs that are not in `fast` are long tests."""
    pairs = [(t, f) for t in tables for f in FORMS]
    return [pytest.param(t, f, marks=() if f"{t} {f}" in fast else pytest.mark.long) for t, f in pairs]


def statement(database: str, form: str, table: str, columns: str, key: str, registry: str) -> str:
    folder, schema = f"{database}-{form}", "shop" if database == "mariadb" else "public"
    topic = f"FROM KAFKA BROKER 'kafka:9092' TOPIC '{folder}.{schema}.{table}'"
    if form == "avro":
        return f"CREATE SOURCE s {topic} FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}/{folder}' ENVELOPE DEBEZIUM"
    primary = f", PRIMARY KEY ({key}) NOT ENFORCED" if key else ""
    return f"CREATE SOURCE s ({columns}{primary}) {topic} FORMAT JSON ENVELOPE DEBEZIUM"


def filled(
    session: Any, folder: Path, database: str, form: str, table: str, columns: str, key: str, registry: str, parts: int = 1
) -> Source:
    source = Source(session, folder, statement(database, form, table, columns, key, registry), parts)
    schema = "shop" if database == "mariadb" else "public"
    sent = messages(f"{database}-{form}", f"{schema}.{table}")
    half = len(sent) // 2
    source.send(sent[:half])
    source.send(sent[half:])
    assert source.reasons() == []
    return source


def plain(value: Any) -> Any:
    """Normalizes a value for comparison.

    Intervals become microseconds, NaN becomes text, and decimals lose trailing zeros.
    """
    if isinstance(value, tuple) and value and value[0] == ("months", 0):
        return dict(value)["micros"] + dict(value)["days"] * 86_400_000_000
    if isinstance(value, Decimal):
        return value.normalize()
    return tuple(value) if isinstance(value, list) else "NaN" if value != value else value


def plain_rows(rows: Any) -> Counter[tuple[Any, ...]]:
    counted = rows.items() if isinstance(rows, Counter) else ((row, 1) for row in rows)
    out: Counter[tuple[Any, ...]] = Counter()
    for row, n in counted:
        out[tuple(map(plain, row))] += n
    return out


@pytest.fixture(scope="module")
def shop(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """Yields a database after the recorded statements, except those for replication."""
    with psycopg.connect(postgres, autocommit=True) as own:
        own.execute("DROP DATABASE IF EXISTS recorded")
        own.execute("CREATE DATABASE recorded")
    dsn = psycopg.conninfo.make_conninfo(postgres, dbname="recorded")
    with psycopg.connect(dsn, autocommit=True) as first, psycopg.connect(dsn, autocommit=True) as second:
        for name in ("shop-postgres.sql", "shop-postgres-changes.sql"):
            lines = [
                x
                for x in (FIXTURES / name).read_text().splitlines()
                if not x.startswith(("CREATE USER", "GRANT", "CREATE PUBLICATION", "--"))
            ]
            for text in "\n".join(lines).split(";\n"):
                if text.strip():
                    first.execute(sql.SQL(text))  # type: ignore[arg-type]  # recorded text
        for line in (FIXTURES / "shop-postgres-interleaved.txt").read_text().splitlines():
            if line[0] in "12":
                (first if line[0] == "1" else second).execute(sql.SQL(line[2:]))  # type: ignore[arg-type]
        first.execute("SET timezone = 'UTC'")
        yield first


@pytest.mark.parametrize(("table", "form"), chosen(POSTGRES, "items avro", "items json", "purchases jsonschema", "notes json"))
def test_postgres(session: Any, schemas: str, shop: psycopg.Connection[Any], tmp_path: Path, table: str, form: str) -> None:
    key, columns, select = POSTGRES[table]
    source = filled(session, tmp_path, "postgres", form, table, columns, key, schemas)
    names = [c.strip().split()[0] for c in columns.replace("(7,2)", "").replace("(12,4)", "").split(",")]
    expected = [row[: len(names)] for row in shop.execute(f"SELECT {select} FROM {table}")]  # type: ignore[arg-type]
    assert plain_rows(source.counted(*names)) == plain_rows(expected)


@pytest.mark.parametrize(("table", "form"), chosen(MARIADB, "items json", "purchases avro", "users jsonschema", "notes avro"))
def test_mariadb(session: Any, schemas: str, tmp_path: Path, table: str, form: str) -> None:
    key, columns = MARIADB_COLUMNS[table]
    source = filled(session, tmp_path, "mariadb", form, table, columns, key, schemas)
    names = [c.strip().split()[0] for c in columns.replace("(7,2)", "").replace("(12,4)", "").split(",")]
    expected = MARIADB[table]
    if form == "avro" and table == "items":  # MariaDB sends JSON as text
        expected = [(*r[:5], {'{"lang": "en", "pages": 321}': '{"lang":"en","pages":321}'}.get(r[5], r[5]), *r[6:]) for r in expected]
    assert plain_rows(source.counted(*names)) == plain_rows(expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_column_added_between_messages(session: Any, schemas: str, tmp_path: Path, form: str) -> None:
    """Rows that are not sent again have the schema's default in Avro.

    In JSON they have NULL, because no event has the default.
    """
    for database in ("postgres", "mariadb"):
        columns = "id bigint, score numeric(5,1)"
        source = filled(session, tmp_path / database, database, form, "users", columns, "id", schemas)
        scores = dict(source.held("id", "score"))
        default = Decimal("1.5") if form == "avro" else None
        assert scores == {1: Decimal("99.9"), 2: default, 3: default, 5: Decimal("-0.5"), 40: default}


def test_before_the_truncate(session: Any, schemas: str, tmp_path: Path) -> None:
    """Covers values that the final tables lack.

    These are a negative time, a set, bits, a month and deleted rows.
    """
    key, columns = MARIADB_COLUMNS["purchases"]
    for form in FORMS:
        source = Source(session, tmp_path / form, statement("mariadb", form, "purchases", columns, key, schemas))
        source.send(messages(f"mariadb-{form}", "shop.purchases")[:4])
        assert plain_rows(source.counted()) == plain_rows(
            [
                (1, 1, 1, 2, Decimal("39.8"), "new", datetime(2026, 1, 4, 12, 0, 0, 1), 30_600_250_000, b"\x05"),
                (2, 3, 1, 1, Decimal("12345.67"), "new,paid", datetime(2026, 1, 4, 12, 0, 1, 999999), None, None),
                (4, 2, 1, 4, Decimal(135), "new,paid", datetime(2026, 1, 5, 0, 0, 1, 500000), -1_800_000_000, b"\x0f"),
            ]
        )
    key, columns, _ = POSTGRES["purchases"]
    for form in FORMS:
        source = Source(session, tmp_path / f"p{form}", statement("postgres", form, "purchases", columns, key, schemas))
        source.send(messages(f"postgres-{form}", "public.purchases")[:3])
        assert plain_rows(source.counted("n", "ship_time", "wait", "user_id")) == plain_rows(
            [(1, 30_600_250_000, 93_600_000_000, 1), (1, None, None, 2), (1, 1_800_000_000, -MONTH, 4)]
        )


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
def test_in_two_partitions(session: Any, schemas: str, tmp_path: Path, database: str) -> None:
    """Events for the whole table reach all rows, in any partition."""
    key, columns = MARIADB_COLUMNS["purchases"]
    one = filled(session, tmp_path / "1", database, "avro", "purchases", columns, key, schemas)
    two = filled(session, tmp_path / "2", database, "avro", "purchases", columns, key, schemas, 2)
    assert two.counted() == one.counted()
