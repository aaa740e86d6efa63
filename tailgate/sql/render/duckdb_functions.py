"""Installs the macros and user-defined functions that rendered plans call into a DuckDB connection.

The text of an error contains its SQLSTATE: `[22012] division by zero`. error_of() translates DuckDB's
errors. Only this module of the package imports the `duckdb` library.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from itertools import pairwise, starmap
from typing import Any

import duckdb
import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.errors import (  # fmt: skip
    DataException,
    DatetimeFieldOverflow,
    InvalidEscapeSequence,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    OutOfMemory,
    QueryCanceled,
    TailgateError,
    of,
)
from tailgate.lake.types import GENERAL, NUMERIC_PRECISION, Type
from tailgate.sql import interruption
from tailgate.sql.compute.catalogue import UDFS
from tailgate.sql.compute.registry import Udf
from tailgate.sql.plan.sort_keys import GENERAL_KEY
from tailgate.sql.render.duckdb_macros import MACROS
from tailgate.values import raw
from tailgate.values.numbers import general
from tailgate.values.numbers.numerics import field_overflow

SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'",
    "SET GLOBAL order_by_non_integer_literal = true",  # of an aggregate of a constant; also for cursors of the connection
)
MARK = re.compile(r"\[([0-9A-Z]{5})\] (.*?)(?:\n|$)", re.S)
TO_INTEGER = re.compile(r"to type (INT16|INT32|INT64)\b")
TO_DECIMAL = re.compile(r"to (?:type )?DECIMAL\((\d+),(\d+)\)")
OF_LEAST = re.compile(r"Overflow (?:in division of |on abs\()(-\d+)")
LEAST = {str(-(2**15)): "smallint", str(-(2**31)): "integer"}
INTEGERS = {"INT16": "smallint", "INT32": "integer", "INT64": "bigint"}


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Installs the settings, functions and macros; a second call has no effect. The connection has no transaction."""
    for setting in SETTINGS:
        connection.execute(setting)
    create: Any = connection.create_function  # its stub does not accept names of types
    parsed = cache(lambda name: connection.sqltype(_duckdb(name)))  # a type per function took a quarter of the time
    connection.begin()  # a transaction for each function takes a fifth of the time
    try:
        create("tg_error", _raise, ["VARCHAR"], '"NULL"', type="arrow", null_handling="special")
    except duckdb.NotImplementedException:  # it is installed
        connection.rollback()
        return
    for udf in UDFS.values():
        arguments, result = [parsed(t) for t in udf.arguments], parsed(udf.result)
        function = _vectorised(udf, arguments, result)
        create("tg_" + udf.name, function, arguments, result, type="arrow", null_handling="special", side_effects=udf.volatile)
    connection.execute("; ".join(f"CREATE OR REPLACE MACRO {macro}" for macro in MACROS))
    connection.commit()


def _vectorised(udf: Udf, types: list[Any], returns: Any) -> Callable[..., Any]:
    """Returns a function of Arrow arrays: NULL for a NULL argument, and one call for repeated values. Its signature has DuckDB's types."""
    function, arrow = udf.function, _arrow(udf.result)
    readers = [READERS.get(t) for t in udf.arguments]
    write = WRITERS.get(udf.result)
    checked_every = 1 if "general" in udf.arguments else CHECKED_EVERY  # one value may have 100,000 digits

    def run(*arrays: Any) -> Any:
        memo: dict[tuple[Any, ...], Any] = {}
        out: list[Any] = []
        size = 0
        for number, values in enumerate(zip(*map(_values, arrays, udf.arguments), strict=True)):
            if number % checked_every == 0:
                interruption.check()
            if None in values:
                out.append(None)
                continue
            try:
                # 0.0 and -0.0 compare equal but are different arguments
                key = tuple(repr(v) if isinstance(v, (float, list, dict)) else v for v in values)
                result = memo.get(key, memo)
                if result is memo:
                    result = function(*(v if r is None else r(v) for r, v in zip(readers, values, strict=True)))
                    if write is not None and result is not None:
                        result = write(result)
                    if len(memo) < MEMO_MAX and not udf.volatile:
                        memo[key] = result
                    if isinstance(result, str | bytes | list):
                        size += len(result)
                        if size > VECTOR_MAX:
                            raise OutOfMemory("out of memory", detail=f"A function gave more than {VECTOR_MAX} bytes for 2048 rows.")
            except TailgateError as error:
                raise RuntimeError(f"[{error.sqlstate}] {error.message}") from None
            except MemoryError:
                raise RuntimeError("[53200] out of memory") from None
            out.append(result)
        return pa.array(out, type=arrow)

    return with_signature(run, types, returns)


def with_signature(function: Callable[..., Any], types: Sequence[Any], returns: Any) -> Callable[..., Any]:
    """Gives a function a signature of DuckDB's types.

    DuckDB takes the types from `create_function`, and examines the signature, too: of a parameter without a type it tries to make one of
    "no annotation", and catches the exception, which takes half of the time. A signature alone takes twice the time of both.
    """
    parameters = [inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_ONLY, annotation=t) for i, t in enumerate(types)]
    function.__signature__ = inspect.Signature(parameters, return_annotation=returns)  # type: ignore[attr-defined]  # inspect reads it
    return function


def _raise(messages: Any) -> Any:
    """Raises the first of the messages, as error() of DuckDB."""
    raise RuntimeError(messages[0].as_py())


def _values(array: Any, type: str) -> list[Any]:
    """Returns the values of an argument. A general numeric is a tuple of its fields (`values.numbers.general`)."""
    if type in ("general", "general[]"):
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if type == "general[]":
        ends = array.offsets.to_pylist()
        items = _values(array.values, "general")
        lists = (items[start:end] for start, end in pairwise(ends))
        return [item if valid else None for item, valid in zip(lists, array.is_valid().to_pylist(), strict=True)]
    if type == "general":
        return general.fields(array)
    if type.removesuffix("[]") in ("date", "timestamp", "timestamptz"):
        stored_type = Type(type.removesuffix("[]"), is_array=type.endswith("[]"))
        return raw.values(raw.stored(array, stored_type), stored_type)
    values: list[Any] = array.to_pylist()
    return values


def _duckdb(name: str) -> str:
    """Returns DuckDB's type. A numeric is text, because its precision and scale vary."""
    if name == "pairs":
        return "STRUCT(key VARCHAR, value VARCHAR)[]"
    if name.endswith("[]"):
        return _duckdb(name[:-2]) + "[]"
    return "VARCHAR" if name == "numeric" else GENERAL_TYPES.get(name, Type(name)).duckdb


def _arrow(name: str) -> pa.DataType:
    if name == "pairs":
        return pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    if name.endswith("[]"):
        return pa.list_(_arrow(name[:-2]))
    return pa.string() if name == "numeric" else GENERAL_TYPES.get(name, Type(name)).arrow


# general numerics and their sort keys
GENERAL_TYPES = {"general": GENERAL, "key": GENERAL_KEY}


READERS: dict[str, Callable[[Any], Any]] = {
    "numeric": Decimal,
    "general": lambda fields: sortable.loaded(*fields),
    "general[]": lambda values: list(starmap(sortable.loaded, values)),
    "interval": lambda value: (value["months"], value["days"], value["micros"]),
}
WRITERS: dict[str, Callable[[Any], Any]] = {
    "numeric": lambda value: format(value, "f"),
    "general": sortable.stored,
    "general[]": lambda values: list(map(sortable.stored, values)),
    "interval": lambda value: dict(zip(("months", "days", "micros"), value, strict=True)),
}
MEMO_MAX = 2048  # results; the size of a vector in DuckDB
VECTOR_MAX = 256 << 20  # characters or elements that a function may give for one vector
CHECKED_EVERY = 32  # values: whether the statement is to end


# --- errors --------------------------------------------------------------------------------------


def error_of(error: duckdb.Error) -> TailgateError:
    """Returns PostgreSQL's error for DuckDB's error during a rendered plan."""
    text = str(error)
    if match := MARK.search(text):
        return of(match[1], match[2])
    if "must not end with escape character" in text:
        return InvalidEscapeSequence("LIKE pattern must not end with escape character")
    if isinstance(error, duckdb.InterruptException):
        return QueryCanceled("canceling statement due to user request")
    if isinstance(error, (duckdb.OutOfRangeException, duckdb.ConversionException)):
        first = text.split("\n")[0]  # without the part of the statement
        if match := TO_INTEGER.search(first):
            return NumericValueOutOfRange(f"{INTEGERS[match[1]]} out of range")
        if (match := TO_DECIMAL.search(first)) and int(match[1]) < NUMERIC_PRECISION:
            return field_overflow(int(match[1]), int(match[2]))
        if "DECIMAL" in first.upper():
            return NumericValueOutOfRange("numeric field overflow")
        for word, name in INTEGERS.items():
            if word in first:
                return NumericValueOutOfRange(f"{name} out of range")
        if match := OF_LEAST.search(first):
            return NumericValueOutOfRange(f"{LEAST.get(match[1], 'bigint')} out of range")
        if "timestamp" in text.lower() or "date" in text.lower():
            return DatetimeFieldOverflow("timestamp out of range")
        if isinstance(error, duckdb.ConversionException) and "Could not convert string" in text:
            return InvalidTextRepresentation(text.removeprefix("Conversion Error: ").split("\n")[0])
        return NumericValueOutOfRange("value out of range")
    if isinstance(error, duckdb.OutOfMemoryException):
        return OutOfMemory("out of memory")
    return DataException(text.split("\n")[0]) if isinstance(error, duckdb.InvalidInputException) else TailgateError(text.split("\n")[0])
