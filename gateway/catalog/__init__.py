"""pg_catalog and information_schema: real relations, computed from the catalog, in a DuckDB of their own.

What happens to one query of a client's:

1. `reading` sees that it names a relation or function of the system catalog and nothing of the user's, and makes a `CatalogQuery` of it:
   `rewrite` turns the tree into DuckDB's SQL, `tables` what stands in FROM; `typing` finds the PostgreSQL types of the columns.
2. `database` holds PostgreSQL 15's fixed rows (`postgres15.zip`, `relations.json`) and our items' (`rows`), brought to the catalog of
   the moment; `views.sql` has the relations that are queries over others.
3. `functions` are PostgreSQL's functions, in Python, `native` those that DuckDB has.

The oracle is PostgreSQL: tests/gateway/catalog compares the statements of real clients.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from gateway import lists
from gateway.catalog import database
from gateway.catalog.facts import Facts, Session
from gateway.catalog.functions import Functions
from gateway.catalog.reading import CatalogQuery, Described, catalog_query, catalog_tree, described, is_catalog_query, parsed
from lake import errors
from lake.catalog import Catalog
from lake.roles import OPERATOR_ID
from lake.types import Field, Type, arrow_schema
from sql.authorization import Authorized

__all__ = ["CatalogQuery", "Described", "SystemCatalog", "catalog_query", "catalog_tree", "described", "is_catalog_query", "parsed"]

ACTIVITY = "pg_stat_activity"  # its rows are those of the moment
SUBSCRIPTIONS = f"{lists.SCHEMA}.subscriptions"

# Opens a closed DuckDB instance in memory after calling the function with it: gateway.serving.sandbox.
Opener = Callable[[Callable[[duckdb.DuckDBPyConnection], None]], duckdb.DuckDBPyConnection]
Fetch = Callable[[duckdb.DuckDBPyConnection], pa.Table]  # all rows of what was executed


class Job(Protocol):
    """Where a statement runs, so that it can be interrupted there."""

    def running(self, on: duckdb.DuckDBPyConnection | None) -> None: ...


class NoJob:
    def running(self, on: duckdb.DuckDBPyConnection | None) -> None:
        pass


NO_JOB = NoJob()


def _listing(relation: str, session: Session, catalog: Catalog, status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a relation of the schema tailgate."""
    if relation == lists.INTERNAL_ERRORS:
        return lists.internal_errors(session.internal_errors(), status.get("internal_errors", ()))
    said = {"subscriptions": session.subscriptions()} if relation == SUBSCRIPTIONS else status
    return lists.table(relation, catalog, said, session.may_see)


class SystemCatalog:
    """The catalog's database, opened at its first query. Safe from many threads.

    Each query has a connection and a transaction of its own: it sees the catalog of its session, and the rows of the moment
    (pg_stat_activity, what the engine says) which it alone has put there, and which go with the transaction.
    """

    def __init__(self, opener: Opener, fetch: Fetch = lambda result: result.to_arrow_table()) -> None:
        self._opener, self._fetch = opener, fetch
        self._lock = threading.Lock()  # of the three below
        self._facts = Facts()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._catalog: Catalog | None = None
        self.functions = Functions()

    def run(
        self,
        query: Authorized[CatalogQuery],
        values: Sequence[object],
        session: Session,
        catalog: Catalog,
        status: Mapping[str, Any] | None = None,
        told: Described | None = None,
        job: Job = NO_JOB,
    ) -> tuple[tuple[Field, ...], pa.Table]:
        """Columns and rows of a query. `values` of its parameters may be text. `status`: what the engine says of itself, for a query
        that `asks_engine`. `told`: its columns, if they are known. Raises SQL errors."""
        made = query.plan
        activity = session.sessions() if ACTIVITY in made.relations else None
        listings = {relation: _listing(relation, session, catalog, status or {}) for relation in made.listed}
        with self._asked(session, catalog, job) as connection:
            if activity is not None:
                database.fill(connection, f"pg.{ACTIVITY}", activity)
            for relation, listing in listings.items():
                database.fill(connection, relation, listing)
            result = self._execute(connection, made.sql, made.used, values)
            told = told or described(made, _description(result))
            return told.fields, self._shown(self._fetch(result), told)

    def describe(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog) -> tuple[tuple[Field, ...], tuple[Type, ...]]:
        """Columns and types of the parameters: it runs, for no rows."""
        return described(query.plan, self.description(query, session, catalog)).fields, query.plan.parameters

    def description(self, query: Authorized[CatalogQuery], session: Session, catalog: Catalog, job: Job = NO_JOB) -> list[tuple[str, str]]:
        """Names and types of the columns, as DuckDB tells them: it runs, for no rows."""
        made = query.plan
        with self._asked(session, catalog, job) as connection:
            return _description(self._execute(connection, made.limited, made.used, [None] * len(made.parameters)))

    @contextlib.contextmanager
    def _asked(self, session: Session, catalog: Catalog, job: Job) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees the catalog, and functions that answer for the session on this thread."""
        with self._lock:
            connection = self._at(catalog).cursor()
            connection.begin()
            connection.execute("SELECT 1 FROM pg.made_roles LIMIT 0")  # DuckDB's transaction begins with what it reads first
            facts = self._facts
        try:
            job.running(connection)
            with self.functions.asked(session, catalog, facts):
                operator = self.functions.privileges.operator()
                facts = replace(facts, roles={**facts.roles, OPERATOR_ID: operator})
                with self.functions.asked(session, catalog, facts):
                    yield connection
        finally:
            job.running(None)
            connection.close()

    def _at(self, catalog: Catalog) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = self._opener(self._prepare)
        # a session sees the same catalog along a path of its own
        if self._catalog is None or self._catalog.items is not catalog.items:
            database.replace(self._connection, catalog)
            self._facts = self._facts.loaded(self._connection, catalog)
            self._catalog = catalog
        return self._connection

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.functions.install(connection)
        database.build(connection)

    def _execute(
        self, connection: duckdb.DuckDBPyConnection, sql: str, used: frozenset[int], values: Sequence[object]
    ) -> duckdb.DuckDBPyConnection:
        """A parameter may be gone with what it stood in (the dimension of an array function), and DuckDB takes no value for it then."""
        given = {str(n): values[n - 1] for n in used if n <= len(values)}
        try:
            return connection.execute(sql, given) if given else connection.execute(sql)
        except duckdb.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: duckdb.Error) -> Exception:
        text = str(error)
        if "Python exception occurred while executing the UDF" in text:
            return self.functions.raised or error
        if column := re.search(r'Referenced column "([^"]*)" (?:was )?not found|does not have a column named "([^"]*)"', text):
            return errors.UndefinedColumn(f'column "{column[1] or column[2]}" does not exist')
        if "Ambiguous reference" in text:
            return errors.AmbiguousColumn(text.split("Error: ", 1)[-1].split("\n")[0].lower())
        if isinstance(error, duckdb.ConversionException):
            return errors.InvalidTextRepresentation(text.split("Error: ", 1)[-1].split("\n")[0])
        return error

    def _shown(self, table: pa.Table, told: Described) -> pa.Table:
        """Values in stored form: reg types by name, vectors as text."""
        outputs = []
        for column, field, kind in zip(table.columns, told.fields, told.kinds, strict=True):
            out = REGISTERED.get(kind)
            if out is not None:
                function = self.functions.all[out, 1][2]
                column = pa.chunked_array([pa.array([None if v is None else function(int(v)) for v in column.to_pylist()], pa.string())])
            elif pa.types.is_list(column.type) and not field.type.is_array:
                texts = [None if v is None else " ".join(map(str, v)) for v in column.to_pylist()]
                column = pa.chunked_array([pa.array(texts, pa.string())])
            elif column.type != field.type.arrow:
                column = column.cast(field.type.arrow)
            outputs.append(column)
        return pa.Table.from_arrays(outputs, schema=arrow_schema(told.fields))


REGISTERED = {"regclass": "regclass_out", "regtype": "regtype_out", "regproc": "regproc_out", "regnamespace": "regnamespace_out"}


def _description(result: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    return [(str(column[0]), str(column[1])) for column in result.description]
