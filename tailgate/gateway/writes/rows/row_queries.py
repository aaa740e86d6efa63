"""Runs the queries of one statement that writes. They may read rows that the statement provides, and call sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors.incoming import with_places
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.writes.rows.constants import HASHED_MAX, NotConstantError, constant
from tailgate.gateway.writes.rows.query import Query
from tailgate.lake.errors import ProgramLimitExceeded, StatementTooComplex
from tailgate.sql.plan import Column, Scalar
from tailgate.sql.plan.session_calls import SessionCall
from tailgate.sql.plan.writes import INCOMING
from tailgate.sql.render.duckdb import arguments

# the arguments of each call, for each row; empty if no call has arguments
Arguments: TypeAlias = Sequence[Sequence[Sequence[object]]]
# returns the values of each call, for this number of rows
CallEvaluator: TypeAlias = Callable[[tuple[SessionCall, ...], Arguments, int], list[Sequence[object]]]


def arguments_of(calls: tuple[SessionCall, ...], values: Sequence[object], source: pa.Table | None = None) -> Arguments:
    """Returns the arguments of calls that are evaluated once, or for each row of a source."""
    if not any(call.arguments for call in calls):
        return []
    places = {argument.index for call in calls for argument in call.arguments if isinstance(argument, Column)}
    columns = {place: source.column(place).to_pylist() for place in places} if source is not None else {}

    def value(argument: Scalar, row: int) -> object:
        if isinstance(argument, Column):
            return columns[argument.index][row]
        try:
            return constant(argument, values)
        except NotConstantError:
            raise ProgramLimitExceeded(f"a text that is hashed for a key can have at most {HASHED_MAX} characters") from None

    return [[tuple(value(a, row) for a in call.arguments) for call in calls] for row in range(1 if source is None else source.num_rows)]


class RowQueries:
    """The queries of one statement. `values` are those of its parameters; `sequences` evaluates calls of sequences."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, values: Sequence[object], sequences: CallEvaluator | None = None) -> None:
        self.cursor, self.values, self.sequences = cursor, values, sequences

    def query(self, query: Query) -> pa.Table:
        """Returns the rows of a plan, with columns named c0, c1, …"""
        if query.source is not None:
            return self.numbered(query, self.query(query.source))
        values = self._with_values(query.calls, self._with_values(query.session_values, self.values))
        if len(values) > len(self.values) and (literal := query.literal(values)) is not None:
            return literal
        return self._queried(query, values)

    def source_of(self, query: Query, rows: pa.Table) -> pa.Table:
        """Returns incoming rows as the source of a plan: with the columns that its calls have as arguments."""
        if query.source is None or not any(isinstance(argument, Column) for call in query.calls for argument in call.arguments):
            return rows
        with self.incoming(rows):
            return self.query(query.source)

    def numbered(self, query: Query, source: pa.Table) -> pa.Table:
        """Returns the rows of a plan that calls sequences for each row of its source."""
        session_values = self._with_values(query.session_values, self.values)
        arguments = arguments_of(query.calls, session_values, source)
        for number, values in enumerate(self._called(query.calls, arguments, source.num_rows)):
            source = source.append_column(f"number{number}", pa.array(values, pa.int64()))
        with self.incoming(source):
            return self._queried(query, session_values)

    def _with_values(self, calls: tuple[SessionCall, ...], values: Sequence[object]) -> Sequence[object]:
        """Returns the values of parameters, and of calls that are evaluated once with these as arguments."""
        if not calls:
            return values
        return (*values, *(results[0] for results in self._called(calls, arguments_of(calls, values), 1)))

    def _called(self, calls: tuple[SessionCall, ...], arguments: Arguments, rows: int) -> list[Sequence[object]]:
        assert self.sequences is not None
        return self.sequences(calls, arguments, rows)

    def _queried(self, query: Query, values: Sequence[object]) -> pa.Table:
        if not query.sql:
            raise StatementTooComplex("statement is too complex", hint="Insert fewer rows at once, or use COPY.")
        parameters = arguments(values, query.used, query.constants)
        result = self.cursor.execute(query.sql, parameters) if parameters else self.cursor.execute(query.sql)
        return fetched(result, pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(query.columns)]))

    @contextmanager
    def incoming(self, rows: pa.Table, relation: int = INCOMING) -> Iterator[None]:
        """Registers rows and their positions as a relation within a `with` block."""
        placed = with_places(rows)
        name = f"r{relation}"
        self.cursor.register(name, placed.rename_columns([f"c{i}" for i in range(placed.num_columns)]))
        try:
            yield
        finally:
            self.cursor.unregister(name)
