"""The DuckDB instance of the system catalog, and how a query runs in it."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.catalog.catalog_query import CatalogQuery, Described, described
from tailgate.gateway.catalog.functions.catalog_functions import Functions
from tailgate.gateway.catalog.functions.object_names import Facts, Session
from tailgate.gateway.catalog.relations import database
from tailgate.gateway.catalog.rewrite import SAME
from tailgate.gateway.catalog.tables import OTHER, TEMPORARY, readable_columns
from tailgate.lake import errors
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.schemas import TAILGATE
from tailgate.lake.types import Field, Type, arrow_schema
from tailgate.sql.authorization import Authorized
from tailgate.sql.render.duckdb import arguments
from tailgate.values.composites import arrays, records

# Calls a function with a new in-memory DuckDB instance, then locks it: gateway.mirrors.sandbox.
Opener = Callable[[Callable[[duckdb.DuckDBPyConnection], None]], duckdb.DuckDBPyConnection]
Fetch = Callable[[duckdb.DuckDBPyConnection], pa.Table]  # returns all rows of an executed statement


class Job(Protocol):
    """A running statement; `running` sets the connection that a cancel interrupts."""

    def running(self, on: duckdb.DuckDBPyConnection | None) -> None: ...


class NoJob:
    """A job that cannot be interrupted."""

    def running(self, on: duckdb.DuckDBPyConnection | None) -> None:
        pass


NO_JOB = NoJob()


@dataclass(frozen=True, slots=True)
class Outside:
    """Data outside of the catalog that a query reads. `status`: the engine's report. `others`: by id, the rows of user's relations."""

    status: Mapping[str, Any]
    others: Mapping[int, pa.Table]


NOTHING = Outside({}, {})


class SystemCatalog:
    """The system catalog. Thread-safe.

    Its DuckDB instance is opened at the first query. A relation is created, and gets the rows of items, when a query reads it.

    Each query has its own connection and transaction. It sees the catalog of its session. Rows that
    are computed per query (pg_stat_activity, the engine's status) are inserted in this transaction
    and disappear with it.
    """

    def __init__(self, opener: Opener, fetch: Fetch = lambda result: result.to_arrow_table()) -> None:
        self._opener, self._fetch = opener, fetch
        self._lock = threading.Lock()  # guards the two below
        self._facts = Facts()
        self._database: database.Database | None = None
        self.functions = Functions()

    def run(
        self,
        query: Authorized[CatalogQuery],
        values: Sequence[object],
        session: Session,
        catalog: Catalog,
        outside: Outside = NOTHING,
        description: Described | None = None,
        job: Job = NO_JOB,
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Returns columns and rows of a query. Raises SQL errors.

        `values` of parameters may be text. `description` has the columns if they are known.
        """
        plan = query.plan
        needed = database.needed(plan.tables)
        computed = {table: session.computed(name) for name, table in database.COMPUTED.items() if table in needed}
        listings = {f"{TAILGATE}.{name}": session.listing(name, outside.status) for name in plan.listed}
        with self._connection_for(plan, session, catalog, job) as connection:
            for table, rows in (*computed.items(), *listings.items()):
                database.fill(connection, table, rows)
            _create(connection, outside.others)
            result = self._execute(connection, plan.sql, plan.used, values)
            description = description or described(plan, _description(result))
            return description.fields, self._shown(self._fetch(result), description)

    def describe(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog) -> tuple[tuple[Field, ...], tuple[Type, ...]]:
        """Returns the columns, and the types of the parameters, by running the query for zero rows."""
        return described(query.plan, self.description(query, session, catalog)).fields, query.plan.parameters

    def description(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog, job: Job = NO_JOB) -> list[tuple[str, str]]:
        """Returns DuckDB's names and types of the columns, by running the query for zero rows."""
        plan = query.plan
        with self._connection_for(plan, session, catalog, job) as connection:
            _create(connection, {id: arrow_schema(readable_columns(catalog.items[id])).empty_table() for id in plan.others})
            return _description(self._execute(connection, plan.limited, plan.used, [None] * len(plan.parameters)))

    def value(self, name: str, arguments: Sequence[object], session: Session, catalog: Catalog) -> object:
        """Returns the value of a function about the session."""
        with self.functions.asked(session, catalog, self._facts_of(catalog)):
            return self.functions.all[SAME.get(name, name), len(arguments)][2](*arguments)

    @contextlib.contextmanager
    def _connection_for(self, plan: CatalogQuery, session: Session, catalog: Catalog, job: Job) -> Iterator[duckdb.DuckDBPyConnection]:
        """Opens a connection that sees the relations of a query; on this thread, functions answer for the session."""
        facts = self._facts_of(catalog)
        with self._lock:
            if self._database is None:
                self._database = database.Database(self._opener(self._prepare))
            connection = self._database.snapshot(plan.tables, catalog)
        try:
            job.running(connection)
            with self.functions.asked(session, catalog, facts):
                yield connection
        finally:
            job.running(None)
            connection.close()

    def _facts_of(self, catalog: Catalog) -> Facts:
        """Returns the facts of a catalog. Sessions with different search paths share them."""
        with self._lock:
            if self._facts.catalog.items is not catalog.items:
                self._facts = Facts(catalog)
            return self._facts

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.begin()  # a transaction for each function takes half of the time
        self.functions.install(connection)
        database.prepare(connection)
        connection.commit()

    def _execute(
        self, connection: duckdb.DuckDBPyConnection, sql: str, used: frozenset[int], values: Sequence[object]
    ) -> duckdb.DuckDBPyConnection:
        """Executes SQL with those parameters that it still has.

        The rewrite may have removed a parameter, such as the dimension of an array function, and
        DuckDB refuses a value for it.
        """
        used_values = arguments(values, (n for n in used if n <= len(values)), ())
        try:
            return connection.execute(sql, used_values) if used_values else connection.execute(sql)
        except duckdb.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: duckdb.Error) -> Exception:
        """Returns PostgreSQL's error for one of DuckDB."""
        text = str(error)
        if "Python exception occurred while executing the UDF" in text:
            return self.functions.raised or error
        if column := re.search(r'Referenced column "([^"]*)" (?:was )?not found|does not have a column named "([^"]*)"', text):
            return errors.UndefinedColumn(f'column "{column[1] or column[2]}" does not exist')
        if "Ambiguous reference" in text:
            return errors.AmbiguousColumn(text.split("Error: ", 1)[-1].split("\n")[0].lower())
        if column := re.search(r'column "([^"]*)" must appear in the GROUP BY clause', text):
            return errors.GroupingError(f'column "{column[1]}" must appear in the GROUP BY clause or be used in an aggregate function')
        for part, expected in EXPECTED.items():
            if part in text:
                return expected()
        if isinstance(error, duckdb.InvalidInputException):
            return errors.InvalidParameterValue(text.split("Error: ", 1)[-1].split("\n")[0])
        if isinstance(error, duckdb.ConversionException):
            return errors.InvalidTextRepresentation(text.split("Error: ", 1)[-1].split("\n")[0])
        if isinstance(error, UNSUPPORTED):
            return errors.FeatureNotSupported(
                f"not supported in a query of the system catalog: {text.split('Error: ', 1)[-1].splitlines()[0]}"
            )
        return error

    def _shown(self, table: pa.Table, description: Described) -> pa.Table:
        """Converts values to stored form: reg types to names, vectors to text."""
        outputs = []
        for column, field, kind in zip(table.columns, description.fields, description.kinds, strict=True):
            out = REGISTERED.get(kind)
            if out is not None:
                function = self.functions.all[out, 1][2]
                column = pa.chunked_array([pa.array([None if v is None else function(int(v)) for v in column.to_pylist()], pa.string())])
            elif pa.types.is_struct(column.type):
                column = pa.chunked_array([pa.array(_record_texts(chunk), pa.string()) for chunk in column.chunks], pa.string())
            elif pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
                column = pa.chunked_array([_record_arrays(chunk) for chunk in column.chunks], pa.list_(pa.string()))
            elif pa.types.is_list(column.type) and not field.type.is_array:
                texts = [None if v is None else " ".join(map(str, v)) for v in column.to_pylist()]
                column = pa.chunked_array([pa.array(texts, pa.string())])
            elif pa.types.is_interval(column.type):
                values = [None if v is None else (v.months, v.days, v.nanoseconds // 1000) for v in column.to_pylist()]
                column = pa.chunked_array([pa.array(values, field.type.arrow)])
            elif column.type != field.type.arrow:
                column = column.cast(field.type.arrow)
            outputs.append(column)
        return pa.Table.from_arrays(outputs, schema=arrow_schema(description.fields))


def _record_texts(rows: pa.StructArray) -> list[str | None]:
    """Returns rows of numbers, texts and booleans as PostgreSQL prints them."""
    write = records.writer([_field_text] * rows.type.num_fields)
    values = zip(*(field.to_pylist() for field in rows.flatten()), strict=True)
    return [write(row).decode() if valid else None for valid, row in zip(rows.is_valid().to_pylist(), values, strict=True)]


def _record_arrays(column: pa.ListArray) -> pa.ListArray:
    """Returns arrays of rows as arrays of the texts of the rows."""
    texts = iter(_record_texts(column.flatten()))
    lengths = pc.list_value_length(column).to_pylist()
    return pa.array([None if n is None else [next(texts) for _ in range(n)] for n in lengths], pa.list_(pa.string()))


def _field_text(value: object) -> bytes:
    if isinstance(value, list):
        return arrays.writer(_field_text)(value)
    return str(("f", "t")[value] if isinstance(value, bool) else value).encode()


# parts of DuckDB's messages, and PostgreSQL's errors for them
EXPECTED: Mapping[str, Callable[[], errors.TailgateError]] = {
    "More than one row returned by a subquery": lambda: errors.CardinalityViolation(
        "more than one row returned by a subquery used as an expression"
    ),
    "LIMIT/OFFSET cannot be negative": lambda: errors.InvalidRowCountInLimitClause("LIMIT and OFFSET must not be negative"),
    "ORDER term out of range": lambda: errors.InvalidColumnReference("an ORDER BY position is not in select list"),
}
REGISTERED = {name: f"{name}_out" for name in ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole")}
# DuckDB's errors when it parses or binds a query: a form that `rewrite` does not know.
UNSUPPORTED = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException)


def _description(result: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    return [(str(column[0]), str(column[1])) for column in result.description]


def _create(connection: duckdb.DuckDBPyConnection, others: Mapping[int, pa.Table]) -> None:
    """Creates the tables of user's relations for this connection."""
    for id, rows in others.items():
        database.store(connection, f"CREATE TEMP TABLE {TEMPORARY}.{OTHER}{id} AS", rows)
