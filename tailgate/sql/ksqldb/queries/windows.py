"""WINDOW of ksqlDB as functions in FROM of PostgreSQL's dialect.

    TUMBLING, HOPPING, SESSION   tumble, hop, session

Windows close after GRACE PERIOD, 24 hours by default; EMIT FINAL is 'last'. They stay in the table for RETENTION after their end, at least
for 24 hours unless it is given, and for their size and the grace period together.

The windows of a query contain the rows that satisfy its conditions. Those of a join, and of a
stream that has a column with the name of a bound, have the columns SOURCE.COLUMN.
No window begins before 1970. WINDOWSTART and WINDOWEND are its bounds also if the keys of the stream have windows,
whose bounds are those of WHERE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import InvalidParameterValue, UndefinedColumn, WrongObjectType
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.grouping import aggregates_in
from tailgate.sql.ksqldb.queries.items import source_columns
from tailgate.sql.ksqldb.queries.joins import FromClause
from tailgate.sql.ksqldb.queries.scope import ROWKEY, WINDOWSTART, Scope
from tailgate.sql.ksqldb.typed.values import Typed

COLUMNS = frozenset(("window_start", "window_end"))  # of tumble, hop and session
STORE = "Aggregate-Aggregate-Materialize"  # the name that ksqlDB gives to the state of an aggregation
DEFAULT_GRACE_MS = DEFAULT_RETENTION_MS = 24 * 3_600_000


def check_window(window: e.WindowClause, source: FromClause) -> None:
    """Raises 22023, or 42809 for a table."""
    if source.type == "table":
        raise WrongObjectType("WINDOW clause is only supported for streams", position=window.position)
    is_session, message = window.kind == "session", ""
    if window.size <= 0:
        message = "Gap time (gapMs) cannot be zero or negative." if is_session else "Window size (sizeMs) must be larger than zero."
    elif window.advance is not None and not 0 < window.advance <= window.size:
        message = (
            "Window advancement interval should be more than zero and less than window duration which is"
            f" {window.size} ms, but given advancement interval is: {window.advance} ms"
        )
    elif window.retention is not None and window.retention < window.size + (window.grace or 0):
        store, size = ("session", "the session inactivity gap") if is_session else ("window", "its window size")
        message = (
            f"The retention period of the {store} store {STORE} must be no smaller than {size} plus the grace period."
            f" Got {'gap' if is_session else 'size'}=[{window.size}], grace=[{window.grace or 0}], retention=[{window.retention}]"
        )
    if message:
        raise InvalidParameterValue(message, position=window.position)


def check_bounds(query: e.SelectQuery, scope: Scope) -> None:
    """Raises 42703 for a bound of the windows of a query, other than of its source, in WHERE, GROUP BY and aggregates.

    They are columns of SELECT and HAVING only.
    """
    arguments = (call.arguments for call in aggregates_in((query.items, query.having)))
    for part in e.walk((query.where, query.group_by, *arguments)):
        if isinstance(part, e.ColumnReference) and part.column in WINDOW_BOUNDS and part.column not in source_columns(scope.sources):
            raise UndefinedColumn(
                f"Window bounds column {ksqldb_name(part.column)} can only be used in the SELECT clause of windowed aggregations"
                " and can not be passed to aggregate functions.",
                position=part.position,
            )


def windowed(window: e.WindowClause, source: FromClause, conditions: list[str], emit: Literal["", "changes", "final"]) -> tuple[str, Scope]:
    """Returns the rows of a stream that satisfy the conditions, with their windows, and their scope."""
    is_ambiguous = source.scope.joined or not COLUMNS.isdisjoint(source.scope.columns)
    arrival = f", {ARRIVAL}" if ARRIVAL in source.scope.hidden else ""  # * leaves it out
    rows, scope = _flat(source) if is_ambiguous else (f"SELECT *{arrival} FROM {source.text}", source.scope)
    rows = f"({rows} WHERE {' AND '.join(conditions)})"
    scope = replace(without_bounds(scope), window_end=_window_end(window))
    lengths = [window.size] if window.advance is None else [window.advance, window.size]
    grace = DEFAULT_GRACE_MS if window.grace is None else window.grace
    retention = DEFAULT_RETENTION_MS if window.retention is None else window.retention
    lengths += [grace, max(retention, window.size + grace)]
    last = ", 'last'" if emit == "final" else ""
    function = {"tumbling": "tumble", "hopping": "hop", "session": "session"}[window.kind]
    since = f" WHERE {WINDOWSTART} >= 0" if window.kind == "hopping" else ""
    return f"{function}({rows}, rowtime, {', '.join(map(_interval, lengths))}{last}){since}", scope


def without_bounds(scope: Scope) -> Scope:
    """Returns a scope without the bounds of the windows that the keys of its sources have."""
    columns = {name: type for name, type in scope.columns.items() if name not in WINDOW_BOUNDS}
    return replace(scope, columns=columns, joined=tuple(map(without_bounds, scope.joined)))


def with_session_keys(rows: str, keys: list[str]) -> str:
    """Adds the keys of the rows to a call of `session`."""
    return f"{rows.removesuffix(')')}, {', '.join(keys)})"


def _interval(milliseconds: int) -> str:
    return f"interval '{milliseconds} milliseconds'"


def _window_end(window: e.WindowClause) -> str:
    """Returns the text of WINDOWEND. A session ends with its last row, one gap before the end of `session`."""
    if window.kind == "session":
        return f"({WINDOWSTART.replace('window_start', 'window_end')} - {window.size})"
    return f"({WINDOWSTART} + {window.size})"


def _flat(source: FromClause) -> tuple[str, Scope]:
    """Returns the rows with columns SOURCE.COLUMN, and their scope."""
    scope = source.scope
    flat = replace(scope, is_flat=True, of_join={name: name for name in scope.position})

    def items() -> Iterator[str]:
        for one in scope.sources:
            hidden = () if one.unnamed_key is None else (one.unnamed_key[0],)
            times = one.hidden if one.has_position else one.of_table
            columns = (*one.columns, *times, *hidden)
            yield from (f"{scope.text(column, one)} AS {flat.text(column, one)}" for column in dict.fromkeys(columns))
        yield from (f"{text} AS {name}" for name, text in scope.position.items())
        if scope.key is not None:
            yield f"{scope.key.text} AS {quoted(ROWKEY)}"

    if scope.key is not None:
        flat = replace(flat, key=Typed(quoted(ROWKEY), scope.key.type))
    return f"SELECT {', '.join(items())} FROM {source.text}", flat
