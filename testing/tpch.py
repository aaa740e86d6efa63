"""TPC-H: the tables (specification 3.0.1, section 1.4), rows from DuckDB's generator, refresh functions."""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from psycopg.sql import SQL, Identifier
from pyarrow import csv

from tailgate.lake import sortable
from tailgate.lake.catalog import Catalog, Change, items
from tailgate.lake.types import DATE, INT4, Field, Type
from tailgate.sql.render.duckdb_functions import install
from testing.random_queries import Row, Table

QUERIES = sorted((Path(__file__).parent / "queries" / "tpch").glob("q*.sql"))
SHARE = 0.01  # share of the orders that a round adds, and removes; 0.001 in the specification
MONEY = Type("numeric", (15, 2))


def _text(length: int) -> Type:
    return Type("varchar", (length,))


def _char(length: int) -> Type:
    return Type("bpchar", (length,))


TABLES: dict[str, dict[str, Type]] = {
    "region": {"r_regionkey": INT4, "r_name": _char(25), "r_comment": _text(152)},
    "nation": {"n_nationkey": INT4, "n_name": _char(25), "n_regionkey": INT4, "n_comment": _text(152)},
    "part": {
        "p_partkey": INT4, "p_name": _text(55), "p_mfgr": _char(25), "p_brand": _char(10), "p_type": _text(25), "p_size": INT4,
        "p_container": _char(10), "p_retailprice": MONEY, "p_comment": _text(23),
    },
    "supplier": {
        "s_suppkey": INT4, "s_name": _char(25), "s_address": _text(40), "s_nationkey": INT4, "s_phone": _char(15), "s_acctbal": MONEY,
        "s_comment": _text(101),
    },
    "partsupp": {
        "ps_partkey": INT4, "ps_suppkey": INT4, "ps_availqty": INT4, "ps_supplycost": MONEY, "ps_comment": _text(199),
    },
    "customer": {
        "c_custkey": INT4, "c_name": _text(25), "c_address": _text(40), "c_nationkey": INT4, "c_phone": _char(15), "c_acctbal": MONEY,
        "c_mktsegment": _char(10), "c_comment": _text(117),
    },
    "orders": {
        "o_orderkey": INT4, "o_custkey": INT4, "o_orderstatus": _char(1), "o_totalprice": MONEY, "o_orderdate": DATE,
        "o_orderpriority": _char(15), "o_clerk": _char(15), "o_shippriority": INT4, "o_comment": _text(79),
    },
    "lineitem": {
        "l_orderkey": INT4, "l_partkey": INT4, "l_suppkey": INT4, "l_linenumber": INT4, "l_quantity": MONEY, "l_extendedprice": MONEY,
        "l_discount": MONEY, "l_tax": MONEY, "l_returnflag": _char(1), "l_linestatus": _char(1), "l_shipdate": DATE, "l_commitdate": DATE,
        "l_receiptdate": DATE, "l_shipinstruct": _char(25), "l_shipmode": _char(10), "l_comment": _text(44),
    },
}  # fmt: skip
KEYS = {"partsupp": (0, 1), "lineitem": (0, 3)}  # of the other tables: the first column


def make_catalog(kind: type[items.Table] | type[items.Source] = items.Table) -> Catalog:
    """Returns a catalog with the tables, whose columns are all NOT NULL."""
    catalog = Catalog()
    for name, columns in TABLES.items():
        fields = tuple(Field(c, t, False) for c, t in columns.items())
        catalog = catalog.apply(Change((kind(catalog.next_id, name, fields, KEYS.get(name, (0,)), stored=True),)))
    return catalog


def generated(scale: float) -> duckdb.DuckDBPyConnection:
    """Generates the rows in DuckDB.

    Tables have their names; views r<id> have the columns that plans expect.
    """
    import duckdb_extension_tpch as extension

    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    install(connection)
    connection.execute(f"LOAD '{next(Path(extension.__file__).parent.rglob('*.duckdb_extension'))}'")
    connection.execute(f"CALL dbgen(sf={scale})")
    for item in make_catalog().items.values():
        columns = ", ".join(f"CAST({c.name} AS {c.type.duckdb}) AS {c.name}" for c in item.columns)
        connection.execute(f"CREATE OR REPLACE TABLE {item.name} AS SELECT {columns} FROM {item.name}")
        shown = ", ".join(f"{c.name} AS c{i}" for i, c in enumerate(item.columns))
        connection.execute(f"CREATE VIEW r{item.id} AS SELECT {shown} FROM {item.name}")
    return connection


def copy_tables(source: duckdb.DuckDBPyConnection, target: psycopg.Connection[Any], money: Type) -> None:
    """Creates the tables, whose numerics have the type `money`, with the rows of DuckDB in another database."""
    for name, columns in TABLES.items():
        types = (f"{column} {money if type == MONEY else type}" for column, type in columns.items())
        target.execute(SQL(f"CREATE TABLE {name} ({', '.join(types)})"))  # type: ignore[arg-type]
        rows = io.BytesIO()
        csv.write_csv(source.execute(f"SELECT * FROM {name}").to_arrow_table(), rows, csv.WriteOptions(include_header=False))
        with target.cursor().copy(SQL("COPY {} FROM STDIN (FORMAT csv)").format(Identifier(name))) as copy:
            copy.write(rows.getvalue())


def texts(connection: psycopg.Connection[Any], query: str) -> list[tuple[str | None, ...]]:
    """Returns the texts of the rows of a query as a server sends them."""
    result = connection.execute(SQL(query)).pgresult  # type: ignore[arg-type]
    assert result is not None
    values = ((result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples))
    return [tuple(None if value is None else value.decode() for value in row) for row in values]


class Shop:
    """TPC-H's tables and rows with the interface of a world, as `Views` expects it."""

    def __init__(self, server: duckdb.DuckDBPyConnection, seed: int, money: Type = MONEY) -> None:
        """Makes the tables. `money`: the type of the numerics, declared or GENERAL."""
        self.server, self.random = server, random.Random(seed)
        self.tables = tuple(
            Table(i.id, i.name, tuple(replace(c, type=money) if c.type == MONEY else c for c in i.columns), i.key)
            for i in make_catalog(items.Source).items.values()
        )
        self.rows: dict[int, Counter[Row]] = {}

    def table(self, name: str) -> Table:
        return next(t for t in self.tables if t.name == name)

    def all(self) -> list[tuple[Table, Row, int]]:
        return [(t, _stored(t, row), 1) for t in self.tables for row in self.server.execute(f"SELECT * FROM {t.name}").fetchall()]

    def refreshed(self) -> list[tuple[Table, Row, int]]:
        """Runs RF1 and RF2, and returns the changes.

        Copies random orders with their lines to new keys, and deletes other orders with their
        lines.
        """
        out: list[tuple[Table, Row, int]] = []
        orders, lines = self.table("orders"), self.table("lineitem")
        keys = [k for (k,) in self.server.execute("SELECT o_orderkey FROM orders ORDER BY 1").fetchall()]
        chosen = self.random.sample(keys, max(2, int(2 * SHARE * len(keys))))
        copied, removed = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
        first = max(keys) + 1
        for number, key in enumerate(copied):
            for table in (orders, lines):
                for row in self.server.execute(f"SELECT * FROM {table.name} WHERE {table.columns[0].name} = {key}").fetchall():
                    new = (first + number, *row[1:])
                    self.server.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(new))})", new)
                    out.append((table, _stored(table, new), 1))
        for key in removed:
            for table in (orders, lines):
                rows = self.server.execute(f"DELETE FROM {table.name} WHERE {table.columns[0].name} = {key} RETURNING *").fetchall()
                out += [(table, _stored(table, row), -1) for row in rows]
        return out


def _stored(table: Table, row: Row) -> Row:
    """Returns a row as a source has it: general numerics are tuples of their fields."""
    values = zip(row, table.columns, strict=True)
    return tuple(tuple(sortable.stored(v).values()) if c.type.general and isinstance(v, Decimal) else v for v, c in values)
