"""Compares a maintained view, an ad-hoc SELECT and PostgreSQL 15 over the same changing rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from tailgate.lake import sortable
from tailgate.lake.types import WEIGHT, Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import install
from tailgate.values.strings.jsonb import order_key
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World
from tests.sql.oracle import normal, parsed, stored, unstored

TICKS, CHANGES = 4, 15
ID = 16384
Texts = tuple[str | None, ...]


class Relation:
    """A table `t` in DuckDB, in PostgreSQL (`server`) and as input of views, with the same rows.

    `row` returns a random row as texts. `change` inserts such rows and deletes some of the present
    ones.
    """

    def __init__(self, columns: Mapping[str, Type], row: Callable[[random.Random], Texts], server: psycopg.Connection[Any]) -> None:
        self.columns, self.row, self.server = columns, row, server
        self.engine = duckdb.connect()
        install(self.engine)
        self.engine.execute(
            f"CREATE TABLE r{ID} ({', '.join(f'c{i} {t.duckdb}' for i, t in enumerate(columns.values()))}, {WEIGHT} BIGINT)"
        )
        self.table = Table(ID, "t", tuple(Field(n, t) for n, t in columns.items()))
        self.rows: Counter[Texts] = Counter()

    @staticmethod
    def of(columns: Mapping[str, Type], pools: Mapping[str, Sequence[str | None]], server: psycopg.Connection[Any]) -> Relation:
        """Returns a relation whose values are chosen from pools, by the name of the column."""
        return Relation(columns, lambda chance: tuple(chance.choice(pools[name]) for name in columns), server)

    def change(self, chance: random.Random) -> list[tuple[Table, Any, int]]:
        changes = []
        for _ in range(CHANGES):
            deletes = bool(self.rows) and chance.random() < 0.4
            row = chance.choice(sorted(self.rows, key=repr)) if deletes else self.row(chance)
            self.rows[row] += -1 if deletes else 1
            self.rows = +self.rows
            values = tuple(plain(v, t) for v, t in zip(self.values(row), self.columns.values(), strict=True))
            changes.append((self.table, values, -1 if deletes else 1))
        self.tell()
        return changes

    def values(self, row: Texts) -> tuple[Any, ...]:
        return tuple(held(v, t) for v, t in zip(row, self.columns.values(), strict=True))

    def tell(self) -> None:
        self.server.execute("TRUNCATE t")
        self.engine.execute(f"DELETE FROM r{ID}")
        marks = ", ".join(f"%s::{t}" for t in self.columns.values())
        with self.server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO t VALUES ({marks})", list(self.rows.elements()))  # type: ignore[arg-type]
        marks = ", ".join(f"CAST(? AS {t.duckdb})" for t in self.columns.values())
        for row, weight in self.rows.items():
            self.engine.execute(f"INSERT INTO r{ID} VALUES ({marks}, ?)", [*self.values(row), weight])


def held(text: str | None, type: Type) -> Any:
    """Returns a value as a parameter of DuckDB."""
    value = stored(text, type)
    return sortable.stored(value) if value is not None and type.general else value


def plain(value: Any, type: Type) -> Any:
    """Returns a value of DuckDB as a view has it; a general numeric is a tuple of its fields."""
    return tuple(value.values()) if isinstance(value, dict) and type.general else unstored(value, type)


def shown(value: Any, type: Type, loose: bool) -> Any:
    """Returns a value in a comparable form. With `loose`, equal values have the same form."""
    if value is not None and type.is_array:
        return tuple(shown(v, type.element, loose) for v in value)
    value = plain(value, type)
    if value is not None and type.name == "numeric":
        number = sortable.loaded(*value) if isinstance(value, tuple) else value
        return normal(number) if loose and number.is_finite() else f"{number:f}"
    value = normal(value)
    if loose and isinstance(value, tuple) and type.name == "interval":
        return value[0] * 2592000000000 + value[1] * 86400000000 + value[2]
    if loose and value is not None and type.name == "jsonb":
        return order_key(value)
    return value.rstrip(" ") if type.name == "bpchar" and value is not None else value


def compared(session: Any, folder: Path, relation: Relation, queries: Iterable[str], chance: random.Random) -> None:
    """Checks queries over `t` after every tick.

    A query that begins with `~ ` may return any of several equal values.
    """
    world = World(0, tables=0)
    world.tables = (relation.table,)
    views = Views(session, folder, world, 1)
    queries_by_name = {f"v{n}": (q.removeprefix("~ "), q.startswith("~")) for n, q in enumerate(queries)}
    for name, (text, _) in queries_by_name.items():
        query = bind_query(text, views.catalog, numeric_rules=WITH_GENERAL)
        names = [f"x{i}" for i in range(len(query.columns))]
        assert views.add(name, f"SELECT * FROM ({text}) AS q({', '.join(names)})"), text
    views.build()
    for _ in range(TICKS):
        views.tick(relation.change(chance))
        for name, (text, loose) in queries_by_name.items():
            item = views.catalog.relation(name)
            types = [c.type for c in item.columns]

            def counted(rows: Any, types: list[Type] = types, loose: bool = loose) -> Counter[Any]:
                return Counter(tuple(shown(v, t, loose) for v, t in zip(row, types, strict=True)) for row in rows)

            names = [c.name for c in item.columns]
            query_as_text = f"SELECT {', '.join(f'{n}::text' for n in names)} FROM ({text}) AS q({', '.join(names)})"
            answer = relation.server.execute(query_as_text).fetchall()  # type: ignore[arg-type]
            bare = [Type(t.name, is_array=t.is_array, general=t.name == "numeric") for t in types]
            expected = counted([None if v is None else parsed(v, t) for v, t in zip(row, bare, strict=True)] for row in answer)
            query = bind_query(text, views.catalog, numeric_rules=WITH_GENERAL)
            adhoc = counted(relation.engine.execute(render(query.plan)).fetchall(), [c.type for c in query.columns])
            assert adhoc == expected, (text, adhoc - expected, expected - adhoc)
            assert not views.rows[item.errors], (text, views.rows[item.errors])
            view = counted(views.rows[item.id].elements())
            assert view == expected, (text, view - expected, expected - view)
