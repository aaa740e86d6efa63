"""Changes of relations that no tick brings: the difference of two relations, and sums of errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow.compute as pc

from engine.runtime.engine import Engine
from lake.catalog import ERRORS, Item
from lake.entry import stream
from lake.types import WEIGHT, Field, arrow_schema
from lake.weights import negated, total


class Difference:
    """Of the rows of two relations: taken beside the running ticks, brought to the newest entry between two of them."""

    def __init__(self, engine: Engine, old: int, new: int, columns: tuple[Field, ...]) -> None:
        self._engine, self._old, self._new = engine, old, new
        self._schema = arrow_schema(columns, weight=True)
        at = engine.newest
        self._n = at.n
        self._net = total([negated(engine.lake.snapshot(old, at.time)), engine.lake.snapshot(new, at.time)], self._schema)

    def now(self) -> tuple[int, bytes] | None:
        """As changes of the old relation, if there are any."""
        parts = [self._net]
        for entry in self._engine.lake.log.after(self._n, self._engine.newest.n):
            if (gone := entry.changes(self._old)) is not None:
                parts.append(negated(gone.rename_columns(self._schema.names)))
            if (come := entry.changes(self._new)) is not None:
                parts.append(come.rename_columns(self._schema.names))
        net = total(parts, self._schema)
        return (self._old, stream(net)) if net.num_rows else None


def differences(engine: Engine, old: Item, new: Item) -> Iterable[Difference]:
    yield Difference(engine, old.id, new.id, old.columns)
    yield Difference(engine, old.errors, new.errors, ERRORS)


def sums(engine: Engine, begun: Mapping[int, Mapping[int, int]]) -> list[tuple[int, bytes]]:
    """The first changes of relations of errors: sums of what others hold now."""
    schema = arrow_schema(ERRORS, weight=True)
    made = []
    for relation, times_of in begun.items():
        parts = []
        for other, times in times_of.items():
            rows = engine.lake.snapshot(other, engine.newest.time)
            parts.append(rows.set_column(2, WEIGHT, pc.multiply(rows.column(2), times)))
        net = total(parts, schema)
        if net.num_rows:
            made.append((relation, stream(net)))
    return made
