"""Changes that leave out those of one column: rows keep their value of it, and every other difference is applied."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from tailgate.lake.tables.weights import net_without, weighted

Rows = Counter[tuple[int | None, str | None]]


def random_rows(chance: random.Random) -> Rows:
    return Rows((chance.choice([None, 1, 2, 3]), chance.choice([None, "a", "b"])) for _ in range(chance.randrange(8)))


def changes(rows: Rows, factor: int) -> pa.Table:
    """Returns the rows as changes: columns k and place, then the weight."""
    columns = [pa.array([k for k, _ in rows], pa.int32()), pa.array([place for _, place in rows], pa.string())]
    table = pa.Table.from_arrays(columns, ["k", "place"])
    return pa.concat_tables([weighted(table.slice(n, 1), factor * count) for n, count in enumerate(rows.values())] or [weighted(table, 0)])


@pytest.mark.parametrize("number", range(200))
def test_rows_keep_one_column(seed: int, number: int) -> None:
    chance = random.Random(f"{seed} {number}")
    old, new = random_rows(chance), random_rows(chance)
    result = Rows(old)
    for row in net_without(pa.concat_tables([changes(old, -1), changes(new, 1)]), "place").to_pylist():
        result[row["k"], row["place"]] += row["__weight"]
    assert min(result.values(), default=0) >= 0
    for k in (None, 1, 2, 3):
        before, after, then = (Rows({row: n for row, n in rows.items() if row[0] == k and n}) for rows in (old, new, result))
        assert then == (before if before.total() == after.total() else after)
