"""Random tables and changes of them, determined by a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from tailgate.lake.types import INT4, Field, Type
from testing.random_queries import LARGEST, START, TYPES, Row, Table, Value, Writer


class World:
    """Random tables with rows, changes and queries, all determined by the seed."""

    def __init__(self, seed: int, *, tables: int = 3, keyed: bool = False) -> None:
        self.random = random.Random(seed)
        self.keyed = keyed
        self.tables = tuple(self._table(16384 + i * 4, f"t{i}") for i in range(tables))
        self.rows: dict[int, Counter[Row]] = {t.id: Counter() for t in self.tables}

    def _table(self, id: int, name: str) -> Table:
        types = [INT4, *(self.random.choice(TYPES) for _ in range(self.random.randint(1, 4)))]
        columns = tuple(Field(f"{'abcdef'[i]}", t, i > 0) for i, t in enumerate(types))
        return Table(id, name, columns, (0,) if self.keyed or self.random.random() < 0.5 else None)

    def random_value(self, type: Type) -> Value:
        r = self.random
        if r.random() < 0.15:
            return None
        if type.name in LARGEST:
            return r.choice([r.randint(-3, 5), r.randint(-3, 5), r.randint(0, 60), LARGEST[type.name] if r.random() < 0.1 else 1])
        if type.name == "text":
            return r.choice(["", "a", "b", "ab", "B", "7", "-3", "Ω", "x y"])
        if type.name == "bool":
            return r.random() < 0.5
        if type.name == "float8":
            return r.choice([0.0, 1.5, -2.25, 0.1, 1e10, float(r.randint(-3, 5))])
        if type.name == "timestamp":
            return START + timedelta(minutes=37 * r.randint(0, 20))
        return Decimal(r.randint(-300, 500)) / 100

    def random_row(self, table: Table) -> Row:
        first = self.random.randint(0, 7)
        return (first, *(self.random_value(c.type) for c in table.columns[1:]))

    def change(self, count: int = 5, tables: Sequence[Table] | None = None) -> list[tuple[Table, Row, int]]:
        """Makes random inserts, updates and deletes. Returns them as (table, row, weight)."""
        out: list[tuple[Table, Row, int]] = []

        def add(table: Table, row: Row, weight: int) -> None:
            self.rows[table.id][row] += weight
            if not self.rows[table.id][row]:
                del self.rows[table.id][row]
            out.append((table, row, weight))

        for _ in range(count):
            table = self.random.choice(tables or self.tables)
            present = sorted(self.rows[table.id], key=repr)
            what = 1.0 if table.append_only else self.random.random()
            if present and what < 0.25:
                add(table, self.random.choice(present), -1)
                continue
            row = self.random_row(table)
            if table.key is not None:
                for old in present:
                    if all(old[k] == row[k] for k in table.key):
                        add(table, old, -1)
            elif present and what < 0.5:
                add(table, self.random.choice(present), -1)
            add(table, row, self.random.choice([1, 1, 1, 2]) if table.key is None else 1)
        return out

    # ---- queries --------------------------------------------------------------------------------

    def query(self, relations: Sequence[Table] | None = None, *, errors: bool = True, determined: bool = False) -> str:
        """Generates a query that the engine can maintain, over tables (or over views, passed as tables)."""
        writer = Writer(self.random, tuple(relations or self.tables), errors, determined)
        return writer.combined() if self.random.random() < 0.15 else writer.query()

    def halves(self) -> str:
        return Writer(self.random, self.tables, False).halves()
