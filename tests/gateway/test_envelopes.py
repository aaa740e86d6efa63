"""Tests envelopes against a model that handles one key at a time, and their order against Python's."""

from __future__ import annotations

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from tailgate.gateway.results.envelopes import Keyed, Plain, shape_of
from tailgate.lake.errors import AmbiguousColumn, FeatureNotSupported, InvalidColumnReference, UndefinedColumn
from tailgate.lake.types import FLOAT8, INT8, INTERVAL, TEXT, WEIGHT, Field, arrow_schema
from tailgate.sql.statements import KeyEnvelope, OrderWithin

COLUMNS = (Field("a", INT8), Field("b", TEXT), Field("c", FLOAT8))
Row = tuple[object, ...]


def changes(rows: list[tuple[Row, int]]) -> pa.Table:
    schema = arrow_schema(COLUMNS, weight=True)
    columns = list(zip(*[(*row, weight) for row, weight in rows], strict=True)) or [()] * 4
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def shown(shape: Plain | Keyed, table: pa.Table) -> list[Row]:
    assert table.column_names[-1] == WEIGHT
    return list(zip(*[c.to_pylist() for c in shape.shaped(table)], strict=True))


def model(kind: str, key: tuple[int, ...], rows: list[tuple[Row, int]]) -> set[Row]:
    groups: dict[Row, list[tuple[Row, int]]] = defaultdict(list)
    for row, weight in rows:
        groups[tuple(row[i] for i in key)].append((row, weight))
    rest = [i for i in range(3) if i not in key]
    out = set()
    for name, group in groups.items():
        group.sort(key=lambda pair: pair[1])
        weights = [w for _, w in group]
        before: Row = (None,) * len(rest)
        after = before
        match weights:
            case [1]:
                state = "insert" if kind == "debezium" else "upsert"
                after = tuple(group[0][0][i] for i in rest)
            case [-1]:
                state, before = "delete", tuple(group[0][0][i] for i in rest)
            case [-1, 1]:
                state, before, after = "upsert", *(tuple(row[i] for i in rest) for row, _ in group)
            case _:
                state = "key_violation"
        out.add((state, *name, *(before if kind == "debezium" else ()), *after))
    return out


@pytest.mark.parametrize("kind", ["upsert", "debezium"])
@pytest.mark.parametrize("key", [("a",), ("b",), ("b", "a")])
def test_keys(seed: int, kind: str, key: tuple[str, ...]) -> None:
    chance = random.Random(seed)
    shape = shape_of(COLUMNS, KeyEnvelope(kind, key), ())  # type: ignore[arg-type]
    assert isinstance(shape, Keyed)
    for _ in range(200):
        rows: dict[Row, int] = {}
        for _ in range(chance.randrange(0, 9)):
            row = (chance.choice([1, 2, None]), chance.choice(["x", "y", "", None]), chance.choice([0.5, None, float("inf")]))
            rows[row] = chance.choice([-1, -1, 1, 1, 2, -2])
        lines = list(rows.items())
        rows_shown = shown(shape, changes(lines))
        assert set(rows_shown) == model(kind, shape.key, lines)
        assert len(rows_shown) == len({row[1 : 1 + len(key)] for row in rows_shown})


def test_names_and_order_of_columns() -> None:
    """The keys come first, in the order of KEY."""
    assert [f.name for f in shape_of(COLUMNS, KeyEnvelope("upsert", ("b",)), ()).outputs] == ["mz_state", "b", "a", "c"]
    assert [f.name for f in shape_of(COLUMNS, KeyEnvelope("debezium", ("b",)), ()).outputs] == [
        "mz_state", "b", "before_a", "before_c", "after_a", "after_c",
    ]  # fmt: skip


def test_order(seed: int) -> None:
    """Each sort key puts NULLs where its option says."""
    chance = random.Random(seed)
    order = (OrderWithin("b", True, True), OrderWithin(4), OrderWithin("mz_diff"), OrderWithin(2, True, False))
    shape = shape_of(COLUMNS, None, order)
    for _ in range(50):
        rows = [
            ((chance.choice([1, 2, None]), chance.choice(["x", "y", None]), chance.choice([0.5, 2.0, None])), chance.choice([-1, 1]))
            for _ in range(20)
        ]
        rows_shown = shown(shape, changes(rows))

        def place(row: Row) -> tuple[object, ...]:
            weight, a, b, c = row
            return (
                0 if b is None else {"y": 1, "x": 2}[b],
                (c is None, c or 0),
                weight,
                (a is None, -(a or 0)),
            )

        assert sorted(rows_shown, key=str) == sorted([(w, *row) for row, w in rows], key=str)
        assert [place(r) for r in rows_shown] == sorted(place(r) for r in rows_shown)


@pytest.mark.parametrize(
    ("columns", "envelope", "order", "error"),
    [
        (COLUMNS, KeyEnvelope("upsert", ("d",)), (), UndefinedColumn),
        (COLUMNS, None, (OrderWithin("d"),), UndefinedColumn),
        (COLUMNS, None, (OrderWithin(5),), InvalidColumnReference),
        (COLUMNS, None, (OrderWithin(0),), InvalidColumnReference),
        ((Field("a", INT8), Field("a", TEXT)), None, (OrderWithin("a"),), AmbiguousColumn),
        ((Field("a", INTERVAL),), KeyEnvelope("upsert", ("a",)), (), FeatureNotSupported),
    ],
)
def test_what_cannot_be(columns: tuple[Field, ...], envelope: KeyEnvelope | None, order: tuple[OrderWithin, ...], error: type) -> None:
    with pytest.raises(error):
        shape_of(columns, envelope, order)
