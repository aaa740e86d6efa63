"""What statements say about time: AS OF and UP TO, FETCH's timeout; and small queries whose answer is a value.

Source: streaming-sql.md 1.1 to 1.3, for the messages.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from gateway.encode.intervals import interval_micros
from gateway.encode.parameters import from_text
from gateway.encode.style import Style
from lake.errors import DataException, FeatureNotSupported, InvalidParameterValue, NumericValueOutOfRange, TailgateError
from lake.names import Name
from lake.types import Type
from sql.statements import AtLeast, QueryText, Select, Time, parse

if TYPE_CHECKING:
    from gateway.serving import Serving

NO_TIME = "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"
TIMEOUT_MAX_S = 86_400.0  # Materialize's: a day is allowed, 25 hours are not


def of_relation(name: Name) -> QueryText:
    """The query of all rows of a relation."""
    statement = parse(f"SELECT * FROM {name.sql}")
    assert isinstance(statement, Select)
    return statement.query


async def row(serving: Serving, text: QueryText) -> list[Any]:
    """The one row of a query without relations."""
    table = await serving.run(await serving.prepared(text))
    return [column[0].as_py() for column in table.columns]


async def as_of(serving: Serving, given: Time, *, readable: bool = True, strict: bool = False) -> int:
    """The time in ms; `readable`: not older than what can be read. `strict`: as SUBSCRIBE has it, whose times may not depend on the clock,
    and whose errors are all the same."""
    if isinstance(given, AtLeast):
        return max(await as_of(serving, given.time, readable=False, strict=strict), serving.oldest())
    if isinstance(given, int):
        value: Any = given
    else:
        prepared = await serving.prepared(as_query(given))
        if strict and prepared.volatile:
            raise FeatureNotSupported(
                "calling an unmaterializable function in AS OF or UP TO not yet supported",
                hint="Ask for the value first, and write it here.",
            )
        try:
            (value,) = (column[0].as_py() for column in (await serving.run(prepared)).columns)
        except TailgateError as error:
            if strict and error.sqlstate.startswith("22"):
                raise DataException(NO_TIME) from error
            raise
    time = milliseconds(value)
    if time < 0:
        if strict:
            raise DataException(NO_TIME)
        raise NumericValueOutOfRange("out of range integral type conversion attempted")
    if readable:
        check_readable(serving, time)
    return time


def check_readable(serving: Serving, time: int) -> None:
    if time < serving.oldest():
        raise InvalidParameterValue(f"Timestamp ({time}) is not valid for all inputs: the oldest readable time is {serving.oldest()}")


def as_query(given: QueryText) -> QueryText:
    """The query whose one value is the time."""
    if given.parsed is None or isinstance(given.tree, (exp.Select, exp.Values, exp.Union)):
        return given
    return QueryText(f"SELECT {given.text}", max(given.offset - len("SELECT "), 0), exp.select(given.tree.copy()))


def milliseconds(value: Any) -> int:
    match value:
        case bool() | None:
            pass
        case int():
            return value
        case float() | Decimal() if value == int(value):
            return int(value)
        case datetime():
            at = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            return int(at.timestamp() * 1000)
        case date():
            return int(datetime(value.year, value.month, value.day, tzinfo=timezone.utc).timestamp() * 1000)
        case str() if value.strip().lstrip("-").isdigit():
            return int(value)
    raise DataException(NO_TIME)


def timeout(given: str | float | None) -> float | None:
    """FETCH's timeout in seconds.

    >>> timeout("1s"), timeout("1d"), timeout(None)
    (1.0, 86400.0, None)
    """
    if given is None:
        return None
    parts = interval_micros(str(given))
    if parts is None:
        raise InvalidParameterValue(f'invalid TIMEOUT: invalid input syntax for type interval: "{given}"')
    months, days, micros = parts
    seconds = months * 30 * 86_400 + days * 86_400 + micros / 1_000_000
    if seconds < 0:
        raise InvalidParameterValue("invalid TIMEOUT: cannot convert negative interval to duration")
    if seconds > TIMEOUT_MAX_S:
        raise InvalidParameterValue("timeout out of range")
    return seconds


def converted(value: Any, type: Type, style: Style) -> Any:
    """An argument of EXECUTE as a value of the parameter's type: literals in quotes are read as it."""
    return from_text(type, value, style) if isinstance(value, str) and type.name not in ("text", "varchar", "name") else value
