"""The engine's statements without Spark and Kafka. Checks, name resolution and changes are the real code.

    engine.runtime.control.statements ──► `Installation`: an entry of the log, and the rows of new views, by DuckDB

Materialized views are backfilled once and do not change afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa

from tailgate.engine.ddl import ksqldb as ddl
from tailgate.engine.plan.views.inserts import united
from tailgate.engine.plan.views.replacements import switch
from tailgate.engine.runtime.control.blocks.planning import Planning
from tailgate.engine.runtime.control.ksqldb.inserts import KsqldbInserts
from tailgate.engine.runtime.control.ksqldb.items import DroppedTopic, KsqldbItems
from tailgate.engine.runtime.control.new_items import NewItems
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.ticks import writes
from tailgate.engine.runtime.ticks.table_writes import TableWrites
from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.incoming import Incoming
from tailgate.gateway.mirrors.sandbox import Sandbox, open_sandbox
from tailgate.gateway.serving.prepared import scans
from tailgate.lake.catalog import DEAD_LETTERS, Catalog, Change, Item, MaterializedView, Sink, Source, Subscription, ready
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log.entry import Header
from tailgate.lake.readers import holds, reading, subscriptions
from tailgate.lake.tables.weights import negated, total
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.lake.writer.inbox import UNCOMMITTED, Inbox, Record
from tailgate.lake.writer.log_writer import Writer
from tailgate.sql.definitions import bind_definition
from tailgate.sql.ksqldb.statements import CreateItem, InsertValues
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tailgate.sql.statements import CreateKsqldbItem

ENDPOINTS = ddl.Endpoints("kafka:9092", "")


class Engine:
    """The parts of an engine that `Statements` uses.

    `boundary` is held while an entry is appended; `enter` takes records for the inbox.
    """

    stopping = False

    def __init__(
        self,
        lake: Lake,
        writer: Writer,
        boundary: Any,
        enter: Callable[[list[Record]], int] = lambda records: 0,
        inbox: Inbox | None = None,
    ) -> None:
        self.lake, self.writer, self.boundary, self.enter, self.inbox = lake, writer, boundary, enter, inbox
        self.vault = SimpleNamespace(sealed=lambda value, id: f"sealed {id}", opened=dict)
        self.health = SimpleNamespace(resume=lambda channels: None)

    @property
    def catalog(self) -> Catalog:
        return self.writer.catalog

    @property
    def newest(self) -> Header:
        return self.writer.newest

    def change(self, change: Change) -> None:
        with self.boundary:
            self.writer.append(kind="catalog", catalog=change)

    def wait_newer(self, after: int, timeout: float) -> Header:
        return self.lake.log.wait(after, min(timeout, 0.2)) or self.newest

    def wait_inbox(self, number: int, alive: Any) -> None:
        pass

    def opened(self, settings: object) -> dict[str, str]:
        raise ObjectNotInPrerequisiteState("there is no broker")

    def place(self, item: Source | Sink) -> tuple[str, str, dict[str, str]]:
        if isinstance(item, Sink):
            return item.brokers, item.topic, {}
        raise ObjectNotInPrerequisiteState(f"the broker of source {item.name} does not answer")


class Letters:
    """Dead letters of sources that have none."""

    def retry(self, source: Item) -> int:
        return 0

    def delete(self, source: Item, chosen: Callable[[pa.Table], pa.Table]) -> int:
        return chosen(arrow_schema(DEAD_LETTERS).empty_table()).num_rows


class Installation:
    """Appends changes of the catalog to the log.

    With `fills`, backfills new views at once, otherwise they stay empty.
    """

    def __init__(self, engine: Engine, *, fills: bool = True) -> None:
        self.engine = engine
        self.lock = threading.RLock()
        self.settled = threading.Condition()
        self.fills: dict[int, Any] = {}
        self.failures: dict[int, Exception] = {}
        self.switched: set[int] = set()
        self.awaited: set[int] = set()
        self.letters = Letters()
        self._fills = fills
        self._sandbox: Sandbox | None = None  # opened for the first view, because that takes 0.2 s

    def numbered(self, change: Change) -> Change:
        return change

    def install(
        self,
        change: Change,
        fill: tuple[Item, ...] = (),
        changes: Callable[[], Any] = tuple,
        check: Callable[[], None] = lambda: None,
        written: TableWrites | None = None,
    ) -> Header:
        engine = self.engine
        check()
        for item in change.put:
            if item.id not in engine.catalog.items:
                if isinstance(item, Sink):
                    holds.hold(engine.lake, f"sink-{item.id}", engine.newest.n)
                elif isinstance(item, Subscription):
                    subscriptions.begin(engine.lake, item, engine.newest.n, engine.newest.time)
        with engine.boundary:
            if written is None:
                header = engine.writer.append(changes(), kind="catalog", catalog=change)
            else:
                header = self._append_written(change, changes(), written)
            coming = [i for i in fill if i.replaces]
            if coming:
                self._switch(coming)
            elif fill:
                header = self._fill(fill)
        return header

    def _append_written(self, change: Change, changes: Any, written: TableWrites) -> Header:
        """Appends the entry of a change with rows of existing tables, as a tick does."""
        engine = self.engine
        assert engine.inbox is not None
        number = engine.inbox.write([Record(UNCOMMITTED, b"", None), *written.records])
        written.entered(number)
        crash.point("block.entered")
        before, after = engine.newest.inbox, engine.catalog.apply(change)
        rows, ids = writes.written(engine.inbox, before, number, after, number, written.rows)
        header = engine.writer.append([*changes, *rows], kind="catalog", catalog=change, inbox=number, writes=ids)
        crash.point("entry.committed")
        engine.inbox.remove(before, number)
        return header

    def planned_anew(
        self, change: Change, changes: Callable[[], Any] = tuple, check: Callable[[], None] = lambda: None, above: Iterable[Item] = ()
    ) -> list[Item]:
        self.install(change, changes=changes, check=check)
        return []

    def settle(self) -> None:
        pass

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()

    def _fill(self, items: Iterable[Item]) -> Header:
        catalog = self.engine.catalog
        changes = [(i.id, self._rows(i, catalog)) for i in items if isinstance(i, MaterializedView)]
        self.engine.writer.append(changes)
        views = [ready(catalog[i.id]) for i in items]
        targets = [new for i in views if isinstance(i, MaterializedView) and (new := united(i, catalog)) is not None]
        return self.engine.writer.append(kind="catalog", catalog=Change(put=(*views, *targets)))

    def _switch(self, coming: list[Item]) -> None:
        """Switches to the replacements of views in one entry, with the changes of the rows."""
        engine, catalog = self.engine, self.engine.catalog
        change = switch(coming, catalog, lambda item, after: item)
        after = catalog.apply(change)
        changes = []
        for item in coming:
            if isinstance(item, MaterializedView):
                id = item.id if item.has_new_columns else item.replaces
                rows = self._rows(after[id], after)
                if id == item.replaces:
                    rows = total(
                        [negated(reading.snapshot(engine.lake, id, engine.newest.time)), rows], arrow_schema(after[id].columns, weight=True)
                    )
                changes.append((id, rows))
        engine.writer.append(changes, kind="catalog", catalog=change)
        self.switched.update(i.id for i in coming)

    def _rows(self, item: Item, catalog: Catalog) -> pa.Table:
        plan = bind_definition(item, catalog).plan
        schema = arrow_schema(item.columns, weight=True)
        if not self._fills:
            return schema.empty_table()
        if self._sandbox is None:
            self._sandbox = open_sandbox(install, memory_limit=1 << 30)
        cursor = self._sandbox.cursor()
        try:
            for relation in {s.relation for s in scans(plan)}:
                shape = mirror.shape(catalog[relation])
                mirror.create(cursor, shape, temporary=True)
                with Incoming(cursor) as incoming:
                    mirror.fill(incoming, shape, reading.snapshot(self.engine.lake, relation, self.engine.newest.time))
            rows = cursor.execute(render(plan)).to_arrow_table()
        except duckdb.Error as e:
            raise error_of(e) from None
        finally:
            cursor.close()
        rows = rows.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64()))
        return total([mirror.conform(rows, schema)], schema)


class ItemsWithoutKafka(NewItems):
    """The items of CREATE statements without a broker: sources have a channel; connections are not validated."""

    def _on_channel(self, source: Source, start: object, catalog: Catalog) -> Source:
        return replace(source, topic_id="1", channel=f"k#{source.id}/{source.topic}")

    def validate(self, connection: Item) -> None:
        pass


def _not_evaluated(text: str) -> object:
    raise FeatureNotSupported("an expression is not evaluated without Spark")


class KsqldbWithoutKafka(KsqldbItems):
    """The streams and tables of ksqlDB without a broker.

    `messages`: those that INSERT has written, as (topic, key, value). `deleted`: the names of deleted topics.
    """

    messages: list[tuple[str | None, bytes | None, bytes | None]]
    deleted: list[str]

    def items(self, statement: CreateKsqldbItem, text: str, catalog: Catalog) -> tuple[Item, ...]:
        if not isinstance(statement.statement, CreateItem):
            return super().items(statement, text, catalog)
        endpoints = self._endpoints.within(catalog)
        source, letters = ddl.declared_source(statement.statement, text, catalog, self._schemas, endpoints)
        return replace(source, topic_id="1", channel=f"k#{source.id}/{source.topic}"), letters

    def insert(self, statement: InsertValues, catalog: Catalog) -> None:
        register = partial(self._register, self._endpoints.within(catalog))
        source, message = ddl.message_of(statement, catalog, register, _not_evaluated)
        self.messages.append((source.topic, message.key, message.value))

    @contextmanager
    def topics_of(self, change: Change) -> Iterator[None]:
        yield

    def delete(self, topics: list[DroppedTopic]) -> list[str]:
        self.deleted += [topic.name for topic in topics]
        return []

    def _partitions(self, item: Item) -> int | None:
        return 1

    def _records(self, source: Item) -> int:
        return 0


class WithoutKafka(Statements):
    """The engine's statements without a broker."""

    def __init__(self, engine: Engine, *, fills: bool = True) -> None:
        self.installation = Installation(engine, fills=fills)
        super().__init__(engine, self.installation)  # type: ignore[arg-type]
        self._ksqldb = self.ksqldb = KsqldbWithoutKafka(engine, ENDPOINTS, self._registry)  # type: ignore[arg-type]
        self.ksqldb.messages, self.ksqldb.deleted = [], []
        self._inserts = KsqldbInserts(self.installation, self._ksqldb)
        self._new_items = ItemsWithoutKafka(engine, self._registry, self._ksqldb)  # type: ignore[arg-type]
        self.planning = Planning(engine, self._new_items)  # type: ignore[arg-type]

    def close(self) -> None:
        self.installation.close()
