"""Helpers of the lake's tests: relations of any type, random values, and the model of a history.

Rows are compared as the text of their values, so that NaN equals NaN, and nothing is shared with
the code under test.
"""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tailgate.lake import sortable
from tailgate.lake.catalog import Change, Item, MaterializedView
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.lake.readers import reading
from tailgate.lake.tables.stored_relations import table_name
from tailgate.lake.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    GENERAL,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Field,
    Type,
    arrow_schema,
)
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.log_writer import Writer

RECORD = Type("record", fields=(Field("x", INT4), Field("y", TEXT.array())))
MONEY = Type("numeric", (10, 2))
ALL_TYPES = (
    *(BOOL, BYTEA, TEXT, JSONB, INT2, INT4, INT8, FLOAT4, FLOAT8, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, OID, NAME),
    *(NUMERIC, MONEY, GENERAL, Type("varchar", (5,)), Type("bpchar", (3,)), RECORD),
    *(t.array() for t in (INT4, TEXT, NUMERIC, TIMESTAMPTZ, INTERVAL, FLOAT8)),
)

_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=4)
_moments = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))


BOTH_STORES = pytest.mark.parametrize("lake", ["folder", "bucket"], indirect=True)  # in which the fixture `lake` makes a lake

BOTH_STORES_LONG = pytest.mark.parametrize("lake", ["folder", pytest.param("bucket", marks=pytest.mark.long)], indirect=True)


def table_path(lake: Lake, relation: int | str) -> Path:
    """Returns the folder of a relation's Delta table."""
    return lake.path / table_name(relation)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda i: decimal.Decimal(i).scaleb(-scale, decimal.Context(prec=60)))


def values(type: Type, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Returns values of a type as Python objects in stored form, which never contains -0.0."""
    if nullable:
        return st.none() | values(type, nullable=False)
    if type.is_array:
        return st.lists(values(type.element), max_size=2)
    match type.name:
        case "bool":
            return st.booleans()
        case "bytea":
            return st.binary(max_size=3)
        case "int2" | "int4" | "int8":
            return _integers(8 * int(type.name[3]))
        case "time":
            return st.integers(0, 86_400_000_000)
        case "oid":
            return st.integers(0, 2**32 - 1)
        case "float4":
            return st.floats(width=32).map(lambda f: f + 0.0)
        case "float8":
            return st.floats().map(lambda f: f + 0.0)
        case "date":
            return st.dates(datetime.date(1, 1, 2), datetime.date(9999, 12, 30))
        case "timestamp":
            return _moments
        case "timestamptz":
            return _moments.map(lambda t: t.replace(tzinfo=datetime.timezone.utc))
        case "interval":
            return st.fixed_dictionaries({"months": _integers(32), "days": _integers(32), "micros": _integers(64)})
        case "numeric" if type.general:
            special = st.sampled_from(("NaN", "Infinity", "-Infinity")).map(decimal.Decimal)
            digits = st.integers(0, 45).flatmap(lambda scale: _decimals(45, scale)).map(lambda d: d or d.copy_abs())
            return (special | digits).map(sortable.stored)
        case "numeric":
            return _decimals(*type.decimal)
        case "record":
            return st.fixed_dictionaries({f"f{n}": values(f.type) for n, f in enumerate(type.fields, 1)})
        case _:
            return _texts


def item(id: int, columns: Sequence[Field], key: tuple[int, ...] | None, **fields: Any) -> Item:
    """Returns the item of a materialized view with these columns; a bag if `key` is None."""
    return MaterializedView(id, f"r{id}", tuple(columns), key, **{"stored": True, **fields})


def add(writer: Writer, *items: Item) -> Header:
    """Appends a catalog entry that puts the items."""
    return writer.append(kind="catalog", catalog=Change(put=items))


def changes(item: Item, rows: Iterable[tuple[Sequence[Any], int]]) -> pa.Table:
    """Returns rows and weights as the table of a log section."""
    schema = arrow_schema(item.columns, weight=True)
    rows = list(rows)
    columns = [[row[i] for row, _ in rows] for i in range(len(item.columns))]
    return pa.table([pa.array(c, f.type) for c, f in zip([*columns, [w for _, w in rows]], schema, strict=True)], schema=schema)


def text(row: Sequence[Any]) -> str:
    """Returns a row as the text that rows are compared by."""
    return repr(list(row))


def counted(table: pa.Table) -> Counter[str]:
    """Returns the total weight of each row, keyed by its text, without zero weights."""
    total: Counter[str] = Counter()
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        total[text(row[:-1])] += row[-1]
    return Counter({row: weight for row, weight in total.items() if weight})


def folded(parts: Iterable[pa.Table]) -> Counter[str]:
    """Returns the sum of several tables of changes, without zero weights."""
    total: Counter[str] = Counter()
    for part in parts:
        for row, weight in counted(part).items():
            total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def snapshot(lake: Lake, item: Item, at: int | None = None) -> Counter[str]:
    """Returns a relation's rows at a time, by default the newest, with their weights."""
    return counted(reading.snapshot(lake, item.id, at))


class History:
    """A model of the log: each entry's changes per relation, and their sum at any time."""

    def __init__(self) -> None:
        self.entries: list[tuple[Header, dict[int, pa.Table]]] = []

    def append(self, writer: Writer, changes_by_relation: dict[int, pa.Table], **fields: Any) -> Header:
        """Appends an entry with these changes to the log and to the model."""
        header = writer.append(list(changes_by_relation.items()), **fields)
        self.entries.append((header, changes_by_relation))
        return header

    def at(self, relation: int, time: int) -> Counter[str]:
        """Returns a relation's rows at a time, as the sum of its changes."""
        return folded(changes[relation] for header, changes in self.entries if header.time <= time and relation in changes)

    def check(self, lake: Lake, *items: Item) -> None:
        """Checks that each snapshot equals the sum of the changes, at every readable time."""
        since = reading.since(lake)
        for header, _ in self.entries:
            if header.time >= since:
                for item in items:
                    assert snapshot(lake, item, header.time) == self.at(item.id, header.time), (item.name, header.n)


def sweep(writer: Writer) -> None:
    """Runs a sweep, and maintains each table once."""
    retention.sweep(writer)
    for _ in writer.lake.store.names("tables"):
        maintenance.tend(writer.lake, writer.epoch)
