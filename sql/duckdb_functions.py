"""What DuckDB lacks, put into a connection: macros, and functions over Arrow arrays with one meaning with the engine's.

Errors carry their SQLSTATE in the text, `[22012] division by zero`; `error_of` makes an error of ours from any of DuckDB's.

The one module of this package that knows the `duckdb` library.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

import sql.compute  # noqa: F401  # which fills FUNCTIONS
from lake.errors import (
    DataException,
    DatetimeFieldOverflow,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    QueryCanceled,
    TailgateError,
    of,
)  # fmt: skip
from lake.types import Type
from sql import interruption
from sql.compute.registry import FUNCTIONS, Own
from sql.duckdb_macros import MACROS

SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'",
)
MARK = re.compile(r"\[([0-9A-Z]{5})\] (.*?)(?:\n|$)", re.S)
INTEGERS = {"INT16": "smallint", "INT32": "integer", "INT64": "bigint"}


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """All that rendered plans call. Again changes nothing."""
    for setting in SETTINGS:
        connection.execute(setting)
    create: Any = connection.create_function  # its stub knows no types by name
    for own in FUNCTIONS.values():
        name = "tg_" + own.name
        with suppress(duckdb.InvalidInputException):
            connection.remove_function(name)
        arguments = [_duckdb(t) for t in own.arguments]
        create(name, _vectorised(own), arguments, _duckdb(own.result), type="arrow", null_handling="special")
    for macro in MACROS:
        connection.execute("CREATE OR REPLACE MACRO " + macro)


def _vectorised(own: Own) -> Callable[..., Any]:
    """Value by value over Arrow arrays; NULL in, NULL out. What repeats is computed once."""
    function, arrow = own.function, _arrow(own.result)
    readers = [READERS.get(t) for t in own.arguments]
    write = WRITERS.get(own.result)

    def run(*arrays: Any) -> Any:
        memo: dict[tuple[Any, ...], Any] = {}
        out: list[Any] = []
        size = 0
        for number, values in enumerate(zip(*map(_values, arrays), strict=True)):
            if number % CHECKED_EVERY == 0:
                interruption.check()
            if None in values:
                out.append(None)
                continue
            try:
                # 0.0 and -0.0 are equal, and not the same
                key = tuple(repr(v) if isinstance(v, (float, list, dict)) else v for v in values)
                found = memo.get(key, memo)
                if found is memo:
                    found = function(*(v if r is None else r(v) for r, v in zip(readers, values, strict=True)))
                    if write is not None and found is not None:
                        found = write(found)
                    if len(memo) < MEMO_MAX:
                        memo[key] = found
                    if isinstance(found, str | bytes | list):
                        size += len(found)
                        if size > VECTOR_MAX:
                            raise of("53200", "out of memory", detail=f"A function gave more than {VECTOR_MAX} bytes for 2048 rows.")
            except TailgateError as error:
                raise RuntimeError(f"[{error.sqlstate}] {error.message}") from None
            except MemoryError:
                raise RuntimeError("[53200] out of memory") from None
            out.append(found)
        return pa.array(out, type=arrow)

    # DuckDB counts parameters
    names = [inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(len(own.arguments))]
    run.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return run


def _values(array: Any) -> list[Any]:
    return array.to_pylist()  # type: ignore[no-any-return]


def _duckdb(name: str) -> str:
    """A numeric has its own precision and scale everywhere, so it passes as text."""
    if name == "pairs":
        return "STRUCT(key VARCHAR, value VARCHAR)[]"
    if name.endswith("[]"):
        return _duckdb(name[:-2]) + "[]"
    return "VARCHAR" if name == "numeric" else Type(name).duckdb


def _arrow(name: str) -> pa.DataType:
    if name == "pairs":
        return pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    if name.endswith("[]"):
        return pa.list_(_arrow(name[:-2]))
    return pa.string() if name == "numeric" else Type(name).arrow


READERS: dict[str, Callable[[Any], Any]] = {
    "numeric": Decimal,
    "interval": lambda value: (value["months"], value["days"], value["micros"]),
}
WRITERS: dict[str, Callable[[Any], Any]] = {
    "numeric": lambda value: format(value, "f"),
    "interval": lambda value: dict(zip(("months", "days", "micros"), value, strict=True)),
}
MEMO_MAX = 2048  # a vector of DuckDB's
VECTOR_MAX = 256 << 20  # characters or elements that a function may give for one vector
CHECKED_EVERY = 32  # values: whether the statement is to end


# --- errors ----------------------------------------------------------------------------------------------------------------------


def error_of(error: duckdb.Error) -> TailgateError:
    """What PostgreSQL would have said for an error of DuckDB's while it ran a rendered plan."""
    text = str(error)
    if match := MARK.search(text):
        return of(match[1], match[2])
    if "must not end with escape character" in text:
        return of("22025", "LIKE pattern must not end with escape character")
    if isinstance(error, duckdb.InterruptException):
        return QueryCanceled("canceling statement due to user request")
    if isinstance(error, (duckdb.OutOfRangeException, duckdb.ConversionException)):
        if "DECIMAL" in text.upper():
            return NumericValueOutOfRange("numeric field overflow")
        for word, name in INTEGERS.items():
            if word in text:
                return NumericValueOutOfRange(f"{name} out of range")
        if "division" in text:
            return NumericValueOutOfRange("integer out of range" if "INT32" in text else "bigint out of range")
        if "timestamp" in text.lower() or "date" in text.lower():
            return DatetimeFieldOverflow("timestamp out of range")
        if isinstance(error, duckdb.ConversionException) and "Could not convert string" in text:
            return InvalidTextRepresentation(text.removeprefix("Conversion Error: ").split("\n")[0])
        return NumericValueOutOfRange("value out of range")
    if isinstance(error, duckdb.OutOfMemoryException):
        return of("53200", "out of memory")
    return DataException(text.split("\n")[0]) if isinstance(error, duckdb.InvalidInputException) else of("XX000", text.split("\n")[0])
