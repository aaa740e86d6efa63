"""The tables of the forms: a random world with a column of every type, a topic that is not stored, and tables for the edges of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from tailgate.lake.types import FLOAT8, GENERAL, INT4, INT8, TEXT, TIMESTAMP, Field, Type
from tailgate.values.networks.addresses import Address, encode
from testing.random_queries import START, Row, Table, Value
from testing.reference.sets import json_text
from testing.worlds import World
from tests.engine.plan import edges
from tests.sql import random_subqueries

EXOTIC = (
    ("k", INT4), ("ts", TIMESTAMP), ("tz", Type("timestamptz")), ("ms", INT8), ("j", Type("jsonb")), ("o", Type("jsonb")),
    ("a", INT4.array()), ("b", TEXT.array()), ("u", Type("uuid")), ("d", Type("date")), ("y", Type("bytea")), ("f", FLOAT8),
    ("g", Type("float4")), ("iv", Type("interval")), ("tm", Type("time")), ("vc", Type("varchar", (4,))), ("x", TEXT),
    ("n", Type("numeric", (10, 2))), ("q", GENERAL), ("ip", Type("inet")),
)  # fmt: skip
SORTED = ("k", "ts", "tz", "ms", "d", "f", "g", "tm", "vc", "x", "n", "q", "ip")  # columns of `w` that min and max accept
EQUAL = (*SORTED, "u", "y", "j", "a", "b")
SUBQUERY_MAX = 1500  # characters; larger queries find nothing more
NAN = float("nan")


class Wide(World):
    """Tables for all forms. Times of the clock are close to times in rows."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, tables=2)
        columns = [Field(name, type) for name, type in EXOTIC]
        self.random.shuffle(columns)
        small = {name: tuple(Field(c, Type(t)) for c, t in of) for name, of in random_subqueries.TABLES.items()}
        topic = replace(self._table(16392, "t2"), key=None, append_only=True)
        own = [topic, Table(16396, "w", tuple(columns), None)]
        own += [Table(16400 + 4 * i, name, of, None) for i, (name, of) in enumerate(small.items())]
        self.small = {t.id for t in own[2:]}
        self.edges = edges.tables(16400 + 4 * len(small))
        own += self.edges
        numbers = (("a", INT4), ("b", GENERAL), ("c", GENERAL), ("d", Type("numeric", (10, 2))), ("e", INT8))
        own.append(Table(own[-1].id + 4, "t3", tuple(Field(n, t, n != "a") for n, t in numbers), None))
        self.tables = (*self.tables, *own)
        self.rows.update({t.id: Counter() for t in own})

    def tick(self, count: int) -> list[tuple[Table, Row, int]]:
        """Returns random changes of a few tables.

        They change some rows, delete most or all rows, or add copies of existing rows.
        """
        r = self.random
        some = r.sample(self.tables, r.randint(1, 3))
        match r.choice(["some", "some", "some", "most", "copies"]):
            case "most":
                return self.delete_rows(some, r.choice([0.6, 0.8, 1.0])) + self.change(2, some)
            case "copies":
                bag_rows = [(t, row) for t in some if t.key is None for row in sorted(self.rows[t.id], key=repr)]
                return self.changed([(t, row, r.randint(1, 2)) for t, row in r.sample(bag_rows, min(count // 2, len(bag_rows)))])
        return self.change(count, some)

    def delete_rows(self, tables: Sequence[Table], share: float = 1.0) -> list[tuple[Table, Row, int]]:
        """Deletes rows with all their copies: all rows, or each with probability `share`."""
        deletions = [(t, row, -n) for t in tables if not t.append_only for row, n in sorted(self.rows[t.id].items(), key=repr)]
        return self.changed([c for c in deletions if share == 1.0 or self.random.random() < share])

    def changed(self, changes: list[tuple[Table, Row, int]]) -> list[tuple[Table, Row, int]]:
        for table, row, weight in changes:
            self.rows[table.id][row] += weight
            if not self.rows[table.id][row]:
                del self.rows[table.id][row]
        return changes

    def random_value(self, type: Type) -> Value:
        return edges.general(self.random) if type.general else super().random_value(type)

    def random_row(self, table: Table) -> Row:
        rows, row = self.rows[table.id], self.new_row(table)
        if rows and table.key is None and self.random.random() < 0.3:  # like an existing row, except for one column
            existing, place = self.random.choice(sorted(rows, key=repr)), self.random.randrange(len(table.columns))
            row = (*existing[:place], row[place], *existing[place + 1 :])
        return next((existing for existing in rows if existing == row), row)  # 0.0 and -0.0 are equal keys of a Counter

    def new_row(self, table: Table) -> Row:
        if table.name == "w":
            return tuple(self.exotic(c) for c in table.columns)
        if table.id in self.small:
            return tuple(self.few(c.type) for c in table.columns)
        if table.name in edges.TABLES:
            return edges.row(self.random, table)
        return super().random_row(table)

    def few(self, type: Type) -> Value:
        """Returns one of few values, so that subqueries find matches."""
        if self.random.random() < 0.2:
            return None
        return self.random.choice(["x", "y", ""]) if type.name == "text" else self.random.randint(0, 3)

    def exotic(self, column: Field) -> Value:
        r, name = self.random, column.name
        if column.type.general:
            return edges.general(r)
        if r.random() < 0.1:
            return None
        if name == "ms":
            return int((START - datetime(1970, 1, 1)).total_seconds() * 1000) + r.randint(0, 12) * 3_600_000
        if column.type.is_array:
            element = (lambda: r.randint(0, 3)) if name == "a" else (lambda: r.choice(["", "a", "b c"]))
            return tuple(None if r.random() < 0.1 else element() for _ in range(r.randint(0, 3)))
        match column.type.name:
            case "timestamp" | "timestamptz":
                at = START + timedelta(minutes=20 * r.randint(0, 36))
                return at if name == "ts" else at.replace(tzinfo=timezone.utc)
            case "jsonb":
                return json_text(self.json(name == "o"))
            case "uuid":
                return f"00000000-0000-4000-8000-00000000000{r.randint(0, 4)}"
            case "inet":
                return encode(Address(4, r.choice((0, 1, 0x0A000001)), r.choice((8, 24, 32))))
            case "date":
                return date(2026, 1, r.randint(1, 5))
            case "bytea":
                return bytes([r.randint(0, 3), 255][: r.randint(0, 2)])
            case "float8" | "float4":
                if r.random() < 0.1:
                    return r.choice([NAN, float("inf"), float("-inf")])
                large = [1e16, -1e16, 3e200, 1e-9] if column.type == FLOAT8 else [2.0**60, -(2.0**60)]
                return r.choice([0.0, -0.0, 1.5, -2.25, 0.5, r.choice(large), float(r.randint(-3, 5)), float(r.randint(-3, 5))])
            case "interval":
                return (0, r.randint(-1, 1), r.randint(-5, 5) * 1_800_000_000)
            case "time":
                return r.randint(0, 23) * 3_600_000_000
            case "varchar":
                return r.choice(["", "a", "ab", "Ω", "x y"])
            case "text":
                return r.choice(["", "a", "a b", "b  a", "Ω b", "7"])
            case "numeric":
                return Decimal(r.randint(-300, 500)) / 100
        return r.randint(0, 4)

    def json(self, object: bool) -> object:
        r = self.random
        if object or r.random() < 0.15:
            return {k: r.choice([1, "a", None, [1, 2]]) for k in r.sample(["a", "b", "bb", "c"], r.randint(0, 3))}
        return [r.choice([1, 2, "a", None, {"a": 1}]) for _ in range(r.randint(0, 3))] if r.random() < 0.95 else 7
