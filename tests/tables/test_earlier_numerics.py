"""Tables of earlier versions, whose numerics without a declared precision are decimal(38, 16), next to new ones."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.types import NUMERIC
from tailgate.sql.statements import CreateTable, parse
from tailgate.sql.tables.creation import new_table
from testing.engine_process import until
from tests.tables.world import World


def table_of_earlier_version(catalog: Catalog) -> Table:
    text = "CREATE TABLE earlier (id int PRIMARY KEY, a numeric, b numeric[])"
    statement = parse(text)
    assert isinstance(statement, CreateTable)
    table, _ = new_table(statement, text, catalog)
    id, a, b = table.columns
    return replace(table, columns=(id, replace(a, type=NUMERIC), replace(b, type=NUMERIC.array())))


def test_they_keep_their_digits_until_they_are_altered(world: World) -> None:
    writer = world.engine.writer
    writer.append(kind="catalog", catalog=Change(put=(table_of_earlier_version(world.lake.catalog()),)))
    assert writer.newest.format == 1
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        until(lambda: sql.execute("SELECT to_regclass('earlier')").fetchone() != (None,))  # the gateway has the entry
        sql.execute("INSERT INTO earlier VALUES (1, 1.10), (2, 10 / 3.0), (3, %s)", [Decimal("2.50")])
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            sql.execute("INSERT INTO earlier VALUES (4, 1e30)")
        texts = "SELECT a::text FROM earlier ORDER BY id"
        assert sql.execute(texts).fetchall() == [("1.1000000000000000",), ("3.3333333333333333",), ("2.5000000000000000",)]
        sql.execute("UPDATE earlier SET b = %s || '{1.5}'", [[Decimal("2.50")]], binary=True)
        chosen = "SELECT coalesce(b, '{NaN}')::text, b = '{2.5,1.5}', b = %s FROM earlier WHERE id = 1"
        expected = ("{2.5000000000000000,1.5000000000000000}", True, True)
        assert sql.execute(chosen, [[Decimal("2.5"), Decimal("1.50")]], binary=True).fetchone() == expected
        sql.execute("CREATE TABLE later (id int PRIMARY KEY, a numeric)")
        assert writer.newest.format == 2
        sql.execute("INSERT INTO later SELECT id, trim_scale(a) FROM earlier")
        joined = "SELECT e.id, (e.a + l.a)::text, e.a = l.a FROM earlier AS e JOIN later AS l ON e.a = l.a ORDER BY 1"
        assert sql.execute(joined).fetchall()[0] == (1, "2.2000000000000000", True)
        assert sql.execute("SELECT count(*) FROM (SELECT a FROM earlier UNION SELECT a FROM later) AS u").fetchone() == (3,)
        sql.execute("UPDATE earlier SET a = later.a * 2 FROM later WHERE later.id = earlier.id AND earlier.id = 3")
        assert sql.execute(texts).fetchall()[2] == ("5.0000000000000000",)
        sql.execute("ALTER TABLE earlier ALTER COLUMN a TYPE numeric")
        sql.execute("INSERT INTO earlier VALUES (4, 1e30), (5, 'NaN'), (6, 1.10)")
        assert [t for (t,) in sql.execute(texts).fetchall()][-3:] == ["1" + "0" * 30, "NaN", "1.10"]
