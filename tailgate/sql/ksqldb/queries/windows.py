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

from dataclasses import replace

from tailgate.lake.errors import InvalidParameterValue, UndefinedColumn, WrongObjectType
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.functions.volatile import CLOCK, clock, has_clock
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.grouping import aggregates_in
from tailgate.sql.ksqldb.queries.items import source_columns
from tailgate.sql.ksqldb.queries.joins import FromClause, flattened
from tailgate.sql.ksqldb.queries.scope import WINDOWSTART, Scope

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


def windowed(query: e.SelectQuery, window: e.WindowClause, source: FromClause, conditions: list[str]) -> tuple[str, Scope]:
    """Returns the rows of a stream that satisfy the conditions, with the windows of a query, and their scope."""
    is_ambiguous = source.scope.joined or not COLUMNS.isdisjoint(source.scope.columns)
    arrival = f", {ARRIVAL}" if ARRIVAL in source.scope.hidden else ""  # * leaves it out
    is_timed = window.kind == "session" and has_clock((query.items, query.group_by, query.having))
    time = f", {clock(source.scope.record)} AS {CLOCK}" if is_timed else ""
    items, scope = f"*{arrival}", source.scope
    if is_ambiguous:
        columns, scope = flattened(source)
        items = ", ".join(f"{text} AS {name}" for text, name in columns)
    rows = f"(SELECT {items}{time} FROM {source.text} WHERE {' AND '.join(conditions)})"
    scope = replace(scope, clock=CLOCK) if is_timed else scope
    scope = replace(without_bounds(scope), window_end=_window_end(window))
    lengths = [window.size] if window.advance is None else [window.advance, window.size]
    grace = DEFAULT_GRACE_MS if window.grace is None else window.grace
    retention = DEFAULT_RETENTION_MS if window.retention is None else window.retention
    lengths += [grace, max(retention, window.size + grace)]
    last = ", 'last'" if query.emit == "final" else ""
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
