"""Evaluates times in statements (AS OF, UP TO, the timeout of FETCH) and other constant expressions.

Source: streaming-sql.md 1.1 to 1.3, for the messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LONG_CHARACTERS
from tailgate.lake import sortable
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import (
    DataException,
    FeatureNotSupported,
    InvalidParameterValue,
    NumericValueOutOfRange,
    ReadOnlySqlTransaction,
    TailgateError,
)
from tailgate.lake.types import GENERAL_ARROW, INT8, Type
from tailgate.sql.authorization import EXECUTE, TYPE, Authorized
from tailgate.sql.grammar.names import position
from tailgate.sql.statements import AtLeast, QueryText, Select, Time, parse
from tailgate.values import raw
from tailgate.values.codec.style import Style
from tailgate.values.composites.dimensions import of_list
from tailgate.values.registry import read_text, text_column, text_writer
from tailgate.values.stored import stored
from tailgate.values.times.calendar import INFINITIES_DATE, INFINITIES_TIME, date_to_timestamp, timestamp_to_date
from tailgate.values.times.intervals import order_key, read_fields
from tailgate.values.times.units import SECOND
from tailgate.values.times.zones import of_session, to_local, to_utc

MOMENTS = frozenset({"date", "timestamp", "timestamptz"})
BY_TEXT = frozenset({"money", "timetz"})  # types to which other values are converted by their text
DAY_MS = 86_400_000
NO_TIME = "AS OF or UP TO should be castable to a (non-null) mz_timestamp value"
_GENERAL_FIELDS = {field.name for field in GENERAL_ARROW}
TIMEOUT_MAX_S = 86_400.0  # as in Materialize: a day is allowed, 25 hours are not


def of_relation(name: Name) -> QueryText:
    """Returns the query of all rows of a relation."""
    statement = parse(f"SELECT * FROM {name.sql}")
    assert isinstance(statement, Select)
    return statement.query


def check_writable(session: Session) -> None:
    """Raises 25006 if the session reads at a time in the past."""
    if session.settings.as_of is not None:
        raise ReadOnlySqlTransaction("rows cannot be written while tailgate.as_of is set", hint="RESET tailgate.as_of.")


async def arguments(session: Session, text: QueryText) -> list[tuple[Any, Type]]:
    """Returns the values and types of the arguments of EXECUTE. Raises 0A000 for a subquery.

    Functions in them may read the relations that the role may read.
    """
    await _check_no_subquery(session, text, "EXECUTE parameter")
    plan = session.access.authorize(await session.serving.binder.prepared(text, (), session.naming.seen))
    return await evaluated(session, plan)


async def evaluated(session: Session, plan: Authorized[Prepared], values: Sequence[object] = ()) -> list[tuple[Any, Type]]:
    """Returns the values of a query of one row, with their types. Numerics are Decimals; dates and timestamps are numbers.

    Multidimensional arrays are texts.
    """
    rows = await session.serving.queries.run(plan, values)
    return [(_value(column, field.type), field.type) for column, field in zip(rows.columns, plan.plan.columns, strict=True)]


def _value(column: pa.ChunkedArray, type: Type) -> Any:
    if type.multidimensional:
        return text_column(raw.stored(column, type), type).cast(pa.string())[0].as_py()
    if type.name in MOMENTS:
        return raw.values(raw.stored(column, type), type)[0]
    value = column[0].as_py()
    return sortable.loaded(**value) if isinstance(value, dict) and value.keys() == _GENERAL_FIELDS else value


async def constant(session: Session, query: QueryText, what: str, oids: Sequence[int] = ()) -> Prepared:
    """Prepares the query of a constant expression, such as a time. Raises 0A000 for an expression that reads relations.

    `what`: the clause that contains the expression, for error messages.
    """
    await _check_no_subquery(session, query, what)
    prepared = await session.serving.binder.prepared(query, oids, session.naming.seen)
    if prepared.relations or any(demand.privilege not in (EXECUTE, TYPE) for demand in prepared.demands):
        raise FeatureNotSupported(f"cannot use a function that reads relations in {what}")
    return prepared


async def _check_no_subquery(session: Session, text: QueryText, what: str) -> None:
    await session.serving.workers.run_bounded(check_no_subquery, text, what, long=len(text.text) > LONG_CHARACTERS)


def check_no_subquery(text: QueryText, what: str) -> None:
    """Raises 0A000 for a query inside the expressions of a select list."""
    for query in text.tree.find_all(exp.Query, exp.Values):
        if query is not text.tree:
            hint = "Run the query first, and write the value here."
            raise FeatureNotSupported(f"cannot use subquery in {what}", hint=hint, position=position(query))


async def as_of(session: Session, expression: Time, relations: Collection[int] | None, *, strict: bool = False) -> int:
    """Returns the time of AS OF or UP TO, in ms since the epoch.

    `relations`: ids of the relations that are read at this time; raises 22023 if it is too old for them. None skips this check.
    `strict`: the rules of SUBSCRIBE: raises 0A000 if the time depends on the clock, and the same 22000 for all invalid values.
    """
    serving = session.serving
    if isinstance(expression, AtLeast):
        return max(await as_of(session, expression.time, None, strict=strict), await serving.progress.readable_since(relations or ()))
    if isinstance(expression, int):
        value: Any = expression
        type = INT8
    else:
        prepared = await constant(session, expression, "AS OF or UP TO")
        if strict and prepared.volatile:
            raise FeatureNotSupported(
                "calling an unmaterializable function in AS OF or UP TO not yet supported",
                hint="Query the value first, and write it here.",
            )
        try:
            plan = session.access.authorize(prepared)
            ((value, type),) = await evaluated(session, plan)
        except TailgateError as error:
            if strict and error.sqlstate.startswith("22"):
                raise DataException(NO_TIME) from error
            raise
    time = milliseconds(value, type)
    if time < 0:
        if strict:
            raise DataException(NO_TIME)
        raise NumericValueOutOfRange("out of range integral type conversion attempted")
    if relations is not None:
        await check_readable(serving, time, relations)
    return time


async def check_readable(serving: Serving, time: int, relations: Collection[int]) -> None:
    """Raises 22023 if the time is too old to read the relations, or precedes their creation."""
    oldest = await serving.progress.readable_since(relations)
    if time < oldest:
        raise InvalidParameterValue(f"Timestamp ({time}) is not valid for all inputs: the oldest readable time is {oldest}")


def milliseconds(value: Any, type: Type) -> int:
    """Returns a value of a type as a time in milliseconds. Raises 22000."""
    match value:
        case bool() | None:
            pass
        case int() if value in (INFINITIES_DATE if type.name == "date" else INFINITIES_TIME if type.name in MOMENTS else ()):
            pass
        case int():
            return value * DAY_MS if type.name == "date" else value // 1000 if type.name in MOMENTS else value
        case float() | Decimal() if isfinite(value) and value == int(value):
            return int(value)
        case str() if value.strip().lstrip("-").isdigit():
            with suppress(ValueError):  # of two signs or too many digits
                return int(value)
    raise DataException(NO_TIME)


def timeout(text: str | float | None) -> float | None:
    """Converts the timeout of FETCH to seconds. Raises 22023 for a malformed, negative or too long interval.

    >>> timeout("1s"), timeout("1d"), timeout(None)
    (1.0, 86400.0, None)
    """
    if text is None:
        return None
    try:
        seconds = order_key(read_fields(str(text))) / SECOND
    except TailgateError as error:
        raise InvalidParameterValue(f"invalid TIMEOUT: {error.message}") from None
    if seconds < 0:
        raise InvalidParameterValue("invalid TIMEOUT: cannot convert negative interval to duration")
    if seconds > TIMEOUT_MAX_S:
        raise InvalidParameterValue("timeout out of range")
    return seconds


def converted(value: Any, source: Type, type: Type, style: Style) -> Any:
    """Converts an argument of EXECUTE to the parameter's type. Parses text as a literal of this type."""
    if isinstance(value, int) and source.name != type.name and {source.name, type.name} <= MOMENTS:
        zone = of_session(style.time_zone)
        local = date_to_timestamp(value) if source.name == "date" else to_local(value, zone) if source.name == "timestamptz" else value
        return timestamp_to_date(local) if type.name == "date" else to_utc(local, zone) if type.name == "timestamptz" else local
    if type.name in BY_TEXT and source.name != type.name and value is not None and not isinstance(value, str):
        value = format(value, "f") if isinstance(value, Decimal) else text_writer(source, style)(value).decode()
    if type.general and isinstance(value, int | float | Decimal):
        value = f"{value:.15g}" if isinstance(value, float) else format(Decimal(value), "f")
    if type.multidimensional and isinstance(value, list):
        value = {"elements": value, "dimensions": list(of_list(len(value)))}
    is_text = type.name in ("text", "varchar", "name") and not type.is_array
    return stored(read_text(value, type, style), type) if isinstance(value, str) and not is_text else value
