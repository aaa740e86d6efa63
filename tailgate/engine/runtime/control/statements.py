"""Runs the statements that gateways send to the engine: CREATE, ALTER, DROP, EXPLAIN and others.

    parse ──► engine.ddl: items ──► Installation.install: entry, circuit, fill ──► answer

One statement at a time changes the catalog. CREATE MATERIALIZED VIEW returns when the view is
filled; this does not block other statements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from tailgate.engine import ddl
from tailgate.engine.ddl.ksqldb import Endpoints, explained
from tailgate.engine.plan.explain import explain
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.connect import Connectors
from tailgate.engine.runtime.control.blocks.installing import install_filled
from tailgate.engine.runtime.control.blocks.planning import (
    Altering,
    Dropping,
    Planning,
    TypeStatement,
    acting_role,
    domain_change,
    owner_id,
)  # fmt: skip
from tailgate.engine.runtime.control.blocks.repeated_statements import answer_again
from tailgate.engine.runtime.control.blocks.tags import tag_of
from tailgate.engine.runtime.control.control import NOBODY, Client, notice
from tailgate.engine.runtime.control.fill_waits import await_replacements, cancel
from tailgate.engine.runtime.control.ksqldb.inserts import KsqldbInserts
from tailgate.engine.runtime.control.ksqldb.items import KsqldbItems
from tailgate.engine.runtime.control.ksqldb.queries import KsqldbQueries
from tailgate.engine.runtime.control.new_items import Creation, NewItems
from tailgate.engine.runtime.control.push.push_queries import PushQueries
from tailgate.engine.runtime.control.recency import JoinedTables
from tailgate.engine.runtime.control.source_statements import Attending
from tailgate.engine.runtime.control.turns import check_canceled, turn
from tailgate.engine.runtime.kafka.assertions import Assertions
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.repeated_writes import unanswered
from tailgate.formats.events.schemas import Part
from tailgate.lake.catalog import Change, Connection, Item, MaterializedView, Sink, Table
from tailgate.lake.catalog.resolution import Resolution, changed
from tailgate.lake.control import FilledTable, StatementRequest, Write
from tailgate.lake.errors import FeatureNotSupported, WrongObjectType
from tailgate.lake.tables.weights import count_added, formed
from tailgate.lake.types import arrow_schema
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.declared.defaults import with_defaults
from tailgate.sql.ksqldb.dialect import DIALECTS, SETTING, Dialect
from tailgate.sql.ksqldb.limits import with_limits
from tailgate.sql.ksqldb.statements import AssertTopic, CreateAs, CreateConnector
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements import (
    OF_CONNECTORS,
    AlterDomain,
    AlterKsqldbItem,
    AlterSecret,
    AlterSequence,
    AlterTable,
    AssertKafka,
    CancelBackfill,
    ChangeConnector,
    ControlQueries,
    CreateEndpoint,
    CreateIndex,
    CreateKsqldbItem,
    CreateSequence,
    CreateSink,
    CreateTable,
    CreateView,
    DeleteDeadLetters,
    Drop,
    Explain,
    InsertMessage,
    InsertStream,
    KsqldbQuery,
    Name,
    Pause,
    Print,
    QueryId,
    RefreshSchema,
    ResumeSource,
    RetryDeadLetters,
    Show,
    Statement,
    ValidateConnection,
    parse,
)
from tailgate.sql.tables.domains import alteration, concerned_columns
from tailgate.sql.tables.indexes import create_index

NO_ENDPOINTS = Endpoints()

WITH_TYPES = (CreateKsqldbItem, AlterKsqldbItem, InsertMessage, InsertStream)  # statements that may name custom types

Answer = dict[str, Any]
Acceptance = Callable[[Write], AbstractContextManager[int]]  # `engine.runtime.ticks.writes.Writes.accepted`
Changing = CreateIndex | CreateSequence | TypeStatement | Dropping | Altering


class Statements:
    """Executes statements for the control interface. Thread safe."""

    def __init__(self, engine: Engine, installation: Installation, endpoints: Endpoints = NO_ENDPOINTS) -> None:
        self._engine, self._installation = engine, installation
        self._attending = Attending(installation, endpoints)
        self._registry = ddl.Registry(engine.vault)
        self._ksqldb = KsqldbItems(engine, endpoints, self._registry)
        self._queries = KsqldbQueries(installation)
        self._inserts = KsqldbInserts(installation, self._ksqldb)
        self._assertions = Assertions(endpoints, self._registry, lambda: engine.catalog, engine.vault)
        self._connectors = Connectors(endpoints)
        self._new_items = NewItems(engine, self._registry, self._ksqldb)
        self.planning = Planning(engine, self._new_items)
        self.push_queries = PushQueries(installation, lambda *query: self._ksqldb.transient(*query))

    def execute_own(self, text: str) -> None:
        """Executes a statement of the engine itself, as the superuser and without a client."""
        self.execute(text, {}, resolve(text, self._engine.catalog, self._engine.catalog), NOBODY)

    # ---- called by the control interface ---------------------------------------------------------

    def execute(self, text: str, settings: dict[str, str], resolution: Resolution, client: Client) -> Answer:
        """Executes one statement and returns the answer of `POST /statement`.

        `resolution` says which objects the names in the statement mean. Raises 40001 if one of them
        has changed since.
        """
        statement, names = parse(text, _dialect(settings)), resolution
        if client.attempt.again and _is_outside_of_the_catalog(statement):
            raise unanswered()
        if (answer := answer_again(self._installation, tag_of(statement), client)) is not None:
            return answer
        if isinstance(statement, WITH_TYPES):
            statement = with_types(statement, self._engine.catalog.with_resolution(names))
        match statement:
            case CreateKsqldbItem() | InsertStream():
                reset: Literal["earliest", "latest"] = "earliest" if settings.get("auto.offset.reset") == "earliest" else "latest"
                return self._create(_with_settings(replace(statement, reset=reset), settings), text, settings.get("role"), names, client)
            case InsertMessage():
                again = self._inserts.insert(statement.statement, names, client)
                return self._answer("INSERT 0 1", *_filled_again(again))
            case AssertKafka():
                self._assertions.check(statement.statement, lambda: check_canceled(client))
                return self._answer(f"ASSERT {'TOPIC' if isinstance(statement.statement, AssertTopic) else 'SCHEMA'}")
            case ChangeConnector():
                verb = "CREATE" if isinstance(statement.statement, CreateConnector) else "DROP"
                return self._answer(f"{verb} CONNECTOR", *map(notice, self._connectors.change(statement.statement)))
            case Show(what=what) if what in OF_CONNECTORS:
                return {**self._answer("SHOW"), "lines": [json.dumps(self._connectors.shown(what, statement.setting))]}
            case ControlQueries():
                notices = self._queries.control(statement, owner_id(settings.get("role"), self._engine.catalog), names, client)
                return self._answer(tag_of(statement), *notices)
            case _ if isinstance(statement, Creation | AlterKsqldbItem):
                return self._create(statement, text, settings.get("role"), names, client)
            case CreateEndpoint():
                return self._create_endpoint(statement, text, settings.get("role"), names, client)
            case _ if isinstance(statement, Changing):
                return self._change(statement, text, settings.get("role"), names, client)
            case AlterSecret():
                return self._alter_secret(statement, names, client)
            case RefreshSchema():
                return self._refresh(statement, names, client)
            case ValidateConnection(name=name):
                self._new_items.validate(ddl.find_item(Connection, name, self._engine.catalog.with_resolution(names)))
                return self._answer(tag_of(statement))
            case CancelBackfill(name=name):
                with turn(self._installation, client):
                    cancel(self._installation, ddl.find_item(MaterializedView, name, self._engine.catalog.with_resolution(names)))
                return self._answer(tag_of(statement))
            case Pause():
                self._attending.pause(statement, names, client)
                return self._answer(tag_of(statement))
            case RetryDeadLetters(name=name):
                return self._answer(self._attending.retry(name, names))
            case DeleteDeadLetters():
                return self._answer(self._attending.delete(statement, settings.get("role"), names))
            case ResumeSource():
                return self._answer(tag_of(statement), *map(notice, self._attending.accept_loss(statement, names, client)))
        return self._read(statement, text, settings, names)

    def follow_topic(self, request: StatementRequest) -> Generator[list[str]]:
        """Yields the lines of a PRINT as its records arrive. Raises 0A000 at the call for another statement."""
        statement = parse(request.sql)
        if not isinstance(statement, Print):
            raise FeatureNotSupported(f"{type(statement).__name__} is not PRINT")
        return self._attending.follow(statement, request.resolution)

    def _read(self, statement: Statement, text: str, settings: dict[str, str], names: Resolution) -> Answer:
        """Executes a statement that changes nothing. Raises 0A000 for one that the engine does not execute."""
        match statement:
            case Print():
                return {**self._answer("PRINT"), "lines": self._attending.print(statement, names)}
            case Show(what="topics" | "topics extended" as what):
                rows = self._attending.topics() if what == "topics" else self._attending.consumed_topics()
                return {**self._answer("SHOW"), "lines": ["\t".join(map(str, row)) for row in rows]}
            case Explain(target=target, schema=part) if part is not None and isinstance(target, Name | CreateSink):
                return {**self._answer("EXPLAIN"), "lines": self._explain_schema(target, part, text, settings.get("role"), names)}
            case Explain(target=target, analyze=analyze) if isinstance(target, Name | QueryId | KsqldbQuery | CreateView):
                return {**self._answer("EXPLAIN"), "lines": self._explain(target, text, settings.get("role"), names, analyze)}
        raise FeatureNotSupported(f"{type(statement).__name__} is not a statement for the engine")

    # ---- changing the catalog ---------------------------------------------------------------------

    def _create(self, statement: Creation | AlterKsqldbItem, text: str, creator: str | None, names: Resolution, client: Client) -> Answer:
        """Creates the items of a statement and waits for their fills."""
        tables = JoinedTables(self._engine)
        while True:
            with turn(self._installation, client):
                catalog = self._engine.catalog.with_resolution(names)
                planned = self.planning.plan(statement, text, catalog, creator)
                if planned.change == Change():
                    return self._answer(planned.tag, *planned.notices)
                if planned.changes_plans:
                    check, above = lambda: check_canceled(client), planned.changed_rows
                    again = self._installation.planned_anew(planned.change, check=check, above=above)
                elif tables.are_read(planned.change, catalog):
                    with self._ksqldb.topics_of(planned.change):
                        installed = install_filled(self._installation, planned.change, client)
                    break
            if planned.changes_plans:
                if isinstance(statement, CreateKsqldbItem):
                    await_replacements(self._installation, again, client)
                return self._answer(planned.tag, *_filled_again(again))
            tables.wait(client)
        return {**installed.answer(planned.tag, client), "notices": [*planned.notices, *installed.notices]}

    def change_table(self, accepted: Acceptance, body: bytes, client: Client) -> Answer:
        """Runs a statement whose rows the gateway has computed or checked, in one entry; returns the answer of `POST /table`.

        It creates or alters a table with its rows, creates a unique index, or alters a domain.
        `accepted` keeps other writes back, and says whether a table that the gateway has read was written since.
        """
        request = FilledTable.decode(body)
        names, (rows,) = request.statement.resolution, (part.changes for part in request.write.parts)
        parsed = parse(request.statement.sql)
        tag = "CREATE TABLE AS" if isinstance(parsed, CreateTable) else tag_of(parsed)
        if (answer := answer_again(self._installation, tag, client)) is not None:
            return answer
        with turn(self._installation, client), accepted(request.write) as conflict:
            if conflict:
                return {"conflict": conflict}
            catalog = self._engine.catalog.with_resolution(names)
            messages: tuple[tuple[str, str], ...] = ()
            match parsed:
                case CreateTable() as creation:
                    owner = owner_id(request.statement.settings.get("role"), catalog)
                    table = replace(ddl.create_table(creation, request.statement.sql, catalog)[0], owner=owner)
                    change, anew = ddl.with_default_privileges(Change(put=(table,)), catalog), False
                case AlterTable() as statement:
                    altered, change = ddl.alter_table(statement, catalog, count_added(pa.ipc.open_stream(rows).read_all()) if rows else 0)
                    table, messages, anew = altered.after, altered.notices, altered.changes_plans
                case CreateIndex() as statement:
                    index, _ = create_index(statement, catalog)
                    if index is None:
                        raise changed("an index")
                    table = catalog.expect(Table, index.depends[0])
                    change, anew = Change(put=(index,)), False
                case AlterDomain() as statement:
                    domain = alteration(statement, catalog)
                    if not {table.id for table, _ in concerned_columns(domain, catalog)} <= names.versions.keys():
                        raise changed("the columns of the domain")  # the gateway has not checked all of them
                    planned, check = domain_change(domain, catalog), lambda: check_canceled(client)
                    again = self._installation.planned_anew(planned.change, check=check, above=planned.changed_rows)
                    return self._answer(planned.tag, *planned.notices, *_filled_again(again))
                case other:
                    raise FeatureNotSupported(f"{type(other).__name__} with rows is not supported")
            ddl.check_types(change.put, acting_role(request.statement.settings.get("role"), catalog), catalog)
            changes = [(table.id, formed(pa.ipc.open_stream(rows).read_all(), arrow_schema(table.columns, weight=True)))] if rows else []
            install = self._installation.planned_anew if anew else self._installation.install
            install(change, changes=lambda: changes, check=lambda: check_canceled(client))
        return self._answer(tag, *(notice(message, sqlstate) for message, sqlstate in messages))

    def _create_endpoint(self, statement: CreateEndpoint, text: str, creator: str | None, names: Resolution, client: Client) -> Answer:
        with turn(self._installation, client):
            catalog = self._engine.catalog.with_resolution(names)
            items, all_notices = ddl.create_endpoint(statement, text, catalog, owner_id(creator, catalog))
            if items is not None:
                ddl.check_definitions(items[:1], catalog)
                self._installation.install(Change(put=items))
        return self._answer(tag_of(statement), *all_notices)

    def _alter_secret(self, statement: AlterSecret, names: Resolution, client: Client) -> Answer:
        """Changes the value of a secret. Readers and sinks that use it restart."""
        with turn(self._installation, client):
            item = ddl.alter_secret(statement, self._engine.catalog.with_resolution(names), self._engine.vault.sealed)
            if item is None:
                return self._answer(tag_of(statement), notice(f'secret "{statement.name}" does not exist, skipping'))
            self._installation.install(Change(put=(item,)))
        return self._answer(tag_of(statement))

    def _refresh(self, statement: RefreshSchema, names: Resolution, client: Client) -> Answer:
        """Reads the schema of a source from its registry again.

        Refills views whose plan changes.
        """
        with turn(self._installation, client):
            change, all_notices = ddl.refresh_schema(statement, self._engine.catalog.with_resolution(names), self._registry)
            again = self._installation.planned_anew(change) if change != Change() else ()
        return self._answer(tag_of(statement), *all_notices, *_filled_again(again))

    def _change(self, statement: Changing, text: str, creator: str | None, names: Resolution, client: Client) -> Answer:
        """Runs a statement that creates an index, a sequence, a schema or a role, or drops or alters objects."""
        with turn(self._installation, client):
            catalog = self._engine.catalog.with_resolution(names)
            topics = self._ksqldb.dropped_topics(statement, catalog) if isinstance(statement, Drop) else []
            planned = self.planning.plan(statement, text, catalog, creator)
            if isinstance(statement, AlterSequence | CreateSequence | TypeStatement) and planned.change != Change():
                self._engine.change(planned.change)
            elif planned.changes_plans and planned.change != Change():
                check, above = lambda: check_canceled(client), planned.changed_rows
                again = self._installation.planned_anew(planned.change, check=check, above=above)
                return self._answer(planned.tag, *planned.notices, *_filled_again(again))
            elif planned.change != Change():
                self._installation.install(planned.change)
                self._installation.settle()  # a filled view may have waited for a view that is dropped now
        failures = self._ksqldb.delete(topics)
        return self._answer(planned.tag, *planned.notices, *({**notice(line), "severity": "WARNING"} for line in failures))

    # ---- explaining ------------------------------------------------------------------------------

    def _explain(
        self, target: Name | QueryId | KsqldbQuery | CreateView, text: str, asker: str | None, names: Resolution, analyze: bool
    ) -> list[str]:
        """Returns the lines of EXPLAIN for a view that exists or is in the statement."""
        catalog = self._engine.catalog.with_resolution(names)
        if isinstance(target, QueryId):
            item: Item = explained(target.id, catalog)
        elif isinstance(target, Name):
            item = catalog.relation(target)
            if analyze and not isinstance(item, MaterializedView):
                raise WrongObjectType(f'"{item.name}" is not a materialized view', position=target.position)
        else:
            if isinstance(target, KsqldbQuery):
                item = self._ksqldb.explained(target.statement, text, catalog)
            else:
                item = ddl.create_view(target, text, catalog)
            item = replace(item, owner=owner_id(asker, catalog))
            ddl.check_definitions((item,), catalog)
            catalog = catalog.apply(Change(put=(item,)))
        return explain(item, catalog, Streams(catalog), statistics=self._engine.figures() if analyze else None).splitlines()

    def _explain_schema(self, target: Name | CreateSink, part: Part, text: str, asker: str | None, names: Resolution) -> list[str]:
        """Returns the lines of EXPLAIN for the schema of a sink's messages."""
        catalog = self._engine.catalog.with_resolution(names)
        if isinstance(target, Name):
            item = ddl.find_item(Sink, target, catalog)
        else:
            view = ddl.sink_view(target, catalog)
            before, catalog = catalog, catalog if view is None else catalog.apply(Change(put=(view,)))
            item = ddl.create_sink(target, text, catalog, view)
            ddl.check_definitions((replace(view or item, owner=owner_id(asker, before)),), before)
        return ddl.sink_schema(item, catalog, part).splitlines()

    def _answer(self, tag: str, *notices: dict[str, Any]) -> Answer:
        """Returns the answer to a statement: its tag, the newest entry and notices."""
        newest = self._engine.newest
        return {"tag": tag, "n": newest.n, "time": newest.time, "notices": list(notices)}


def _is_outside_of_the_catalog(statement: Statement) -> bool:
    """Returns whether a statement has effects that the catalog does not show: records, topics, connectors or rows."""
    if isinstance(statement, Drop):
        return statement.delete_topic
    return isinstance(statement, InsertMessage | ChangeConnector | RetryDeadLetters | DeleteDeadLetters)


def _filled_again(views: Iterable[Item]) -> list[dict[str, Any]]:
    """Returns a notice for each view whose plan has changed."""
    return [notice(f'{i.kind} "{i.name}" is filled again') for i in views]


def _with_settings(statement: CreateKsqldbItem | InsertStream, settings: Mapping[str, str]) -> CreateKsqldbItem | InsertStream:
    """Returns a statement with the defaults, and whose query has the limits, of a session's settings."""
    if not isinstance(statement, CreateKsqldbItem):
        return statement
    creation = with_defaults(statement.statement, settings)
    if isinstance(creation, CreateAs):
        creation = replace(creation, query=with_limits(creation.query, settings))
    return replace(statement, statement=creation)


def _dialect(settings: Mapping[str, str]) -> Dialect:
    """Returns the dialect of a statement."""
    return next((dialect for dialect in DIALECTS if dialect == settings.get(SETTING)), "auto")
