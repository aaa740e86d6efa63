"""INSERT INTO … VALUES: the values of a message's columns."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from tailgate.lake.errors import (
    DatatypeMismatch,
    DatetimeFieldOverflow,
    DuplicateColumn,
    InvalidParameterValue,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import Constant, Constructor, Expression, TypeName
from tailgate.sql.ksqldb.names import ksqldb_name

MICROS = 1_000_000
ROWTIME_MAX = (2**63 - 1) // 1000  # in ms; a timestamp has µs
Evaluate: TypeAlias = Callable[[Expression, TypeName, str], Any]  # the value of an expression for a column with this type and name


@dataclass(frozen=True, slots=True)
class Row:
    """The values of a message by column, in the form that Arrow takes. `timestamp`: ROWTIME in ms, None for now."""

    values: Mapping[str, Any]
    timestamp: int | None = None


def row(statement: s.InsertValues, columns: Mapping[str, TypeName], evaluate: Evaluate) -> Row:
    """Returns the values of INSERT; missing columns are NULL. `columns`: those of the stream or table with their types, first the key.

    `evaluate`: evaluates a value that is not a literal. Raises 42701, 42703, 42804, 22008 or 22023.
    """
    names = statement.columns or tuple(columns)
    if len(names) != len(statement.values):
        raise InvalidParameterValue("Expected number columns and values to match", position=statement.position)
    if (twice := next((name for n, name in enumerate(names) if name in names[:n]), None)) is not None:
        raise DuplicateColumn(f"Column name {ksqldb_name(twice)} is specified more than once.", position=statement.position)
    values: dict[str, Any] = dict.fromkeys(columns)
    timestamp: int | None = None

    def value(expression: Expression, type: TypeName, name: str) -> Any:
        return (_value if _is_literal(expression) else evaluate)(expression, type, name)

    for name, expression in zip(names, statement.values, strict=True):
        if name in ("rowpartition", "rowoffset"):
            raise WrongObjectType(f"Inserting into column `{ksqldb_name(name)}` is not allowed.", position=statement.position)
        if name == "rowtime" and name not in columns:
            timestamp = _milliseconds(value(expression, types.BIGINT, name), statement.position)
            continue
        if name not in columns:
            raise UndefinedColumn(f"Column name {ksqldb_name(name)} does not exist.", position=statement.position)
        values[name] = value(expression, columns[name], name)
    return Row(values, timestamp)


def _milliseconds(rowtime: Any, position: int) -> int | None:
    """Returns a ROWTIME. Raises 22008 if it is out of range."""
    if rowtime is not None and not 0 <= rowtime <= ROWTIME_MAX:
        raise DatetimeFieldOverflow("ROWTIME out of range", position=position)
    return None if rowtime is None else int(rowtime)


def _is_literal(expression: Expression) -> bool:
    """Returns whether a value is a literal, or a constructor of literals."""
    if isinstance(expression, Constructor):
        return all(isinstance(part, str) or _is_literal(part) for part in (*expression.values, *expression.keys))
    return isinstance(expression, Constant)


def _value(expression: Expression, type: TypeName, name: str) -> Any:
    """Returns the value of a literal for a column: of an array, map or structure the text of its JSON."""
    if isinstance(expression, Constructor):
        return _json(expression, type, name)
    assert isinstance(expression, Constant)
    if expression.value is None:
        return None
    try:
        value = _of_text(expression.value, type) if isinstance(expression.value, str) else _of_number(expression.value, type)
    except (ValueError, InvalidOperation, binascii.Error):
        value = None
    if value is None:
        typed = expression.value
        shown = repr(typed) if isinstance(typed, str) else str(typed).lower()
        raise DatatypeMismatch(
            f"Expected type {types.shown(type)} for field `{ksqldb_name(name)}` but got {shown}", position=expression.position
        )
    return value


def _json(expression: Expression, type: TypeName, name: str) -> str:
    """Returns the JSON of a literal, or of a constructor with literals. Raises 42804."""
    match expression:
        case Constructor("array", values) if type.name == "array":
            return "[" + ", ".join(_json(v, type.arguments[0], name) for v in values) + "]"
        case Constructor("map", values, keys) if type.name == "map":
            texts = [_json(k, types.VARCHAR, name) for k in keys if not isinstance(k, str)]
            return _object(texts, [_json(v, type.arguments[1], name) for v in values])
        case Constructor("struct", values, keys) if type.name == "struct" and set(keys) <= set(type.fields):
            of_fields = dict(zip(keys, values, strict=True))
            fields = [of_fields.get(f, Constant(None)) for f in type.fields]
            texts = [json.dumps(ksqldb_name(f), ensure_ascii=False) for f in type.fields]
            return _object(texts, [_json(v, t, name) for v, t in zip(fields, type.arguments, strict=True)])
        case Constructor(kind, position=position):
            raise DatatypeMismatch(
                f"Expected type {types.shown(type)} for field `{ksqldb_name(name)}` but got {kind.upper()}", position=position
            )
    value = _value(expression, type, name)
    return _scalar_json(value // 1000 if type == types.TIME and value is not None else value)  # milliseconds


def _object(keys: Sequence[str], values: Sequence[str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"


def _scalar_json(value: Any) -> str:
    match value:
        case Decimal():
            return f"{value:f}"
        case bytes():
            value = base64.b64encode(value).decode()
        case datetime():
            value = int(value.replace(tzinfo=timezone.utc).timestamp() * 1000)
        case date():
            value = value.toordinal() - date(1970, 1, 1).toordinal()
    return json.dumps(value, ensure_ascii=False)


def _of_number(value: bool | int | float | Decimal, type: TypeName) -> Any:
    """Returns the value of a number or a boolean, or None."""
    if isinstance(value, bool):
        return value if type == types.BOOLEAN else None
    match type.name:
        case "int" if isinstance(value, int) and -(2**31) <= value < 2**31:
            return value
        case "bigint" if isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
        case "double":
            return float(value)
        case "decimal" if not isinstance(value, float):
            return _fitting(Decimal(value), type)
    return None


def _fitting(value: Decimal, type: TypeName) -> Decimal:
    """Returns a decimal with the scale of its type. Raises InvalidOperation if it does not fit."""
    precision, scale = (*type.numbers, 0)[:2] if type.numbers else (38, 16)
    quantized = value.quantize(Decimal(1).scaleb(-scale))
    if quantized != value or len(quantized.as_tuple().digits) > precision:
        raise InvalidOperation
    return quantized


def _of_text(value: str, type: TypeName) -> Any:
    """Returns the value of a text, or None. A time has microseconds. Raises ValueError."""
    match type.name:
        case "varchar":
            return value
        case "bytes":
            return base64.b64decode(value, validate=True)
        case "decimal":
            return _fitting(Decimal(value), type)
        case "date":
            return date.fromisoformat(value)
        case "time":
            at = time.fromisoformat(value)
            return ((at.hour * 60 + at.minute) * 60 + at.second) * MICROS + at.microsecond
        case "timestamp":
            at_time = datetime.fromisoformat(value.removesuffix("Z"))
            return at_time.astimezone(timezone.utc).replace(tzinfo=None) if at_time.tzinfo else at_time
    return None
