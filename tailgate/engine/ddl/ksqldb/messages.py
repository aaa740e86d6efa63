"""INSERT INTO … VALUES: its values, and the message for the topic of a declared stream or table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from tailgate.engine.ddl.ksqldb.serdes import Part, named, serde_of
from tailgate.engine.ddl.ksqldb.unnamed_keys import key_bytes
from tailgate.formats.ksqldb import serde as serdes
from tailgate.formats.registry import Schema
from tailgate.lake.catalog import Catalog, MaterializedView, Source, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DatatypeMismatch, NotNullViolation, UndefinedTable, WrongObjectType
from tailgate.sql.ksqldb import types as ksqldb_types
from tailgate.sql.ksqldb.declared.inserts import Row, row
from tailgate.sql.ksqldb.expressions import Expression, TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import HIDDEN_COLUMNS, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.scope import ROWKEY, MessageScope
from tailgate.sql.ksqldb.queries.scopes import column_types
from tailgate.sql.ksqldb.queries.translation import Translator
from tailgate.sql.ksqldb.statements import InsertValues
from tailgate.sql.ksqldb.typed.values import coerced


@dataclass(frozen=True, slots=True)
class Message:
    """A record for Kafka. `timestamp`: in ms, None for the time at which it is written."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None


Register: TypeAlias = Callable[[str, Schema], int]
Evaluate: TypeAlias = Callable[[str], Any]


def message_of(statement: InsertValues, catalog: Catalog, register: Register, evaluate: Evaluate) -> tuple[Source, Message]:
    """Returns the declared source and the message of INSERT INTO … VALUES. Raises 42809 for an item that cannot be written so.

    `register` registers a schema under a subject and returns its id. `evaluate` returns the value of an expression of PostgreSQL's
    dialect without columns.
    """
    item = catalog.find(Name(statement.name))
    if item is None:
        message = f"Cannot insert values into an unknown stream/table: {ksqldb_name(statement.name)}"
        raise UndefinedTable(message, position=statement.position)
    ksqldb = ksqldb_of(item)
    if ksqldb is None or not isinstance(item, Source):
        raise WrongObjectType(f'"{item.name}" is not a stream or table of ksqlDB', position=statement.position)
    written = values_of(statement, item, ksqldb, evaluate)
    keys = list(ksqldb.message_key)
    missing = [ksqldb_name(name) for name in keys if written.values[name] is None]
    if missing and ksqldb.type == "table":
        raise NotNullViolation(
            f"Failed to insert values into '{ksqldb_name(item.name)}'. Value for primary key column(s) {', '.join(missing)}"
            " is required for tables",
            position=statement.position,
        )
    arrow = {c.name: c.type.arrow for c in item.columns}

    def encode(part: Part, names: Sequence[str]) -> bytes | None:
        """Returns the bytes of the key or the value."""
        serde, of_part = serde_of(part, item, ksqldb), named(item, names)
        schema = serdes.schema(serde, of_part)
        id = None if schema is None else register(f"{ksqldb.topic}-{part}", schema)
        (out,) = serdes.encoded(serde, of_part, [pa.array([written.values[name]], arrow[name]) for name in names], 1, id)
        return out

    is_keyed = any(written.values[name] is not None for name in keys)
    others = [name for name in written.values if name not in keys]
    return item, Message(encode("key", keys) if is_keyed else None, encode("value", others), written.timestamp)


def values_of(statement: InsertValues, item: Source | MaterializedView, ksqldb: KsqldbItem, evaluate: Evaluate) -> Row:
    """Returns the values of the columns, first those of the key. Raises 42809 for an item that cannot be written.

    The unnamed key of a derived stream is ROWKEY, if the statement names it.
    """
    if ksqldb.read_only:
        raise WrongObjectType(f"Cannot insert into read-only {ksqldb.type}: {ksqldb_name(item.name)}", position=statement.position)
    if WINDOW_BOUNDS[0] in ksqldb.message_key:
        raise WrongObjectType("Cannot insert values into windowed stream/table!", position=statement.position)
    includes = item.include if isinstance(item, Source) else ()
    headers = {include.name for include in includes if include.kind in ("header", "headers")}
    if headers.intersection(statement.columns):
        raise WrongObjectType("Cannot insert into HEADER columns", position=statement.position)
    names = [c.name for c in item.columns if c.name not in HIDDEN_COLUMNS and c.name not in headers]
    types = column_types(item)
    has_rowkey = ksqldb.unnamed_key and ksqldb.message_key == (ROWKEY,)
    keys = () if has_rowkey else ksqldb.message_key
    names = [name for name in names if name != ROWKEY or not has_rowkey]

    def value(expression: Expression, type: TypeName, name: str) -> Any:
        return evaluate(_text(expression, type, name))

    columns = {name: types[name] for name in (*keys, *(n for n in names if n not in keys))}
    if not has_rowkey:
        return row(statement, columns, value)
    if isinstance(item, Source):
        written = row(statement, columns, value)
        return replace(written, values={ROWKEY: key_bytes(item, written.values), **written.values})
    is_bytes = types[ROWKEY] == ksqldb_types.BYTES
    if ROWKEY in statement.columns:
        columns[ROWKEY] = ksqldb_types.VARCHAR if is_bytes else types[ROWKEY]
    written = row(statement, columns, value)
    key = written.values.get(ROWKEY)
    return replace(written, values={**written.values, ROWKEY: key.encode() if isinstance(key, str) and is_bytes else key})


def _text(expression: Expression, type: TypeName, name: str) -> str:
    """Returns a value of INSERT that is not a literal in PostgreSQL's dialect. Raises 42804 if the column cannot have it."""
    typed = Translator(MessageScope({}, (), has_position=False), aggregates=False, clause="INSERT", per_record=True).expression(expression)
    is_number = typed.type.name in ksqldb_types.NUMBERS and type.name in ksqldb_types.NUMBERS
    if typed.type not in (type, ksqldb_types.UNKNOWN) and not (is_number and ksqldb_types.widest((typed.type, type)) == type):
        raise DatatypeMismatch(
            f"Expected type {ksqldb_types.shown(type)} for field `{ksqldb_name(name)}` but got {ksqldb_types.shown(typed.type)}",
            position=expression.position,
        )
    return f"CAST({coerced(typed, type).text} AS {ksqldb_types.postgresql(type)})"
