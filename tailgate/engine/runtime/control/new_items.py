"""Makes the items of CREATE statements. Views among them are not ready: the installation prepares and fills them."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine import ddl
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.start import StartOffsets, StartTime
from tailgate.engine.ddl.view import with_errors
from tailgate.engine.runtime.control.channels import on_channel
from tailgate.engine.runtime.control.ksqldb.items import KsqldbItems
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, Change, Connection, Item, MaterializedView, Source
from tailgate.lake.catalog.secrets import settings
from tailgate.sql.ksqldb.statements import AddColumns
from tailgate.sql.statements import (
    CreateAlert,
    CreateConnection,
    CreateFunction,
    CreateKsqldbItem,
    CreateObjective,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateSubscription,
    CreateTable,
    CreateView,
    InsertStream,
    Name,
)

Creation = (
    CreateSource
    | CreateView
    | CreateSink
    | CreateTable
    | CreateSubscription
    | CreateObjective
    | CreateAlert
    | CreateSecret
    | CreateConnection
    | CreateKsqldbItem
    | InsertStream
    | CreateFunction
)


class NewItems:
    """The items of CREATE statements. Asks brokers and registries about sources and connections. Thread safe."""

    def __init__(self, engine: Engine, registry: SchemaLookup, ksqldb: KsqldbItems) -> None:
        self._engine, self._registry, self._ksqldb = engine, registry, ksqldb

    def of(self, statement: Creation, text: str, catalog: Catalog, owner: int, old: Item | None) -> tuple[Item, ...]:
        """Returns the items to put into the catalog, the one that the statement names first. `old`: the item that has this name."""
        if isinstance(statement, CreateFunction):
            return ddl.create_function(statement, text, catalog, owner)
        if old is not None and isinstance(statement, CreateView) and statement.replace:
            return ddl.replace_view(statement, text, catalog, old)
        if old is not None and isinstance(statement, CreateObjective | CreateAlert) and statement.replace:
            return (ddl.replace_watched(statement, text, catalog, old),)
        return tuple(replace(item, owner=owner) for item in self._created(statement, text, catalog))

    def upgraded(self, statement: CreateKsqldbItem, text: str, catalog: Catalog, old: Item) -> tuple[Item, ...]:
        """Returns the items that CREATE OR REPLACE of a stream or table that exists changes."""
        return self._ksqldb.upgraded(statement, text, catalog, old)

    def with_columns(self, statement: AddColumns, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items that ALTER {STREAM | TABLE} … ADD COLUMN changes."""
        return self._ksqldb.with_columns(statement, catalog)

    def _created(self, statement: Creation, text: str, catalog: Catalog) -> tuple[Item, ...]:
        """Returns new items without owners."""
        match statement:
            case CreateSecret():
                return (ddl.create_secret(statement, text, catalog, self._engine.vault.sealed),)
            case CreateConnection():
                connection = ddl.create_connection(statement, text, catalog)
                if statement.validate:
                    self.validate(connection)
                return (connection,)
            case CreateSource():
                source, letters = ddl.create_source(statement, text, catalog, self._registry)
                return self._on_channel(source, ddl.start_of(statement), catalog), letters
            case CreateKsqldbItem():
                return self._ksqldb.items(statement, text, catalog)
            case InsertStream():
                return self._ksqldb.inserting(statement, text, catalog)
            case CreateView():
                view = ddl.create_view(statement, text, catalog)
                return with_errors(view) if isinstance(view, MaterializedView) else (view,)
            case CreateSink():
                query_view = ddl.sink_view(statement, catalog)
                if query_view is None:
                    return (ddl.create_sink(statement, text, catalog),)
                items = with_errors(query_view) if isinstance(query_view, MaterializedView) else (query_view,)
                return (*items, ddl.create_sink(statement, text, catalog.apply(Change(put=items)), items[0]))
            case CreateTable():
                table, others = ddl.create_table(statement, text, catalog)
                return (table, *others)
            case CreateSubscription():
                return (ddl.create_subscription(statement, text, catalog),)
            case CreateAlert():
                return (ddl.create_alert(statement, text, catalog),)
            case CreateObjective():
                return (ddl.create_objective(statement, text, catalog),)
            case CreateFunction():
                raise AssertionError("`of` makes functions")

    def _on_channel(self, source: Source, start: StartOffsets | StartTime | None, catalog: Catalog) -> Source:
        """Returns the source with the channel it reads."""
        return on_channel(self._engine, source, start, catalog)

    def validate(self, connection: Connection) -> None:
        """Connects to a broker or registry.

        Raises 08006 if it does not answer, 22023 or 55000 if the settings cannot be used.
        """
        if connection.type == "kafka":
            kafka.listed(connection.brokers, self._engine.opened(connection.settings))
        else:
            self._registry.latest(connection.url, ddl.PROBE_SUBJECT, settings(connection.settings, self._engine.catalog))


def existing(name: Name, catalog: Catalog) -> Item | None:
    """Returns the item that has the name of the new item, in the schema where it will be."""
    return catalog.find(Name(name.name, catalog.home(name).name))
