"""An engine for statements alone: the real control interface and the real changes of the catalog, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine import ddl
from engine.ddl.names import kept
from engine.runtime.control import Control
from lake import subscriptions
from lake.catalog import Item
from lake.engines import Announcement
from lake.names import listed
from sql.bind import bind_view
from sql.statements import (
    AlterItem,
    AlterRole,
    CreateConnection,
    CreateRole,
    CreateSchema,
    CreateSecret,
    CreateSubscription,
    CreateView,
    Drop,
    DropRole,
    Grant,
    GrantRole,
    parse,
)
from tests.wire.live import Live


class Statements:
    """A materialized view that is created here is ready and stays empty. `seen`: what came, with its settings."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self.seen: list[tuple[str, dict[str, str]]] = []
        self._control = Control(self._statement, self._newest, lambda: {"sources": {}, "sinks": {}, "ticks": 0}, lambda body: {})
        self._control.start()
        Announcement.mine(live.made.writer.epoch, self._control.address, self._control.token, None).write(live.made.lake)

    def _statement(self, sql: str, settings: dict[str, str], client: object) -> dict[str, Any]:
        self.seen.append((sql, settings))
        made = self._live.made
        catalog = made.writer.catalog
        statement = parse(sql)
        notices: list[Any] = []
        match statement:
            case CreateView():
                catalog = catalog.along(listed(settings["search_path"]))
                query = bind_view(statement, catalog)
                item = Item(
                    catalog.next_id,
                    "materialized view" if statement.materialized else "view",
                    statement.name.name,
                    query.columns,
                    stored=statement.materialized,
                    errors=(catalog.next_id + 1) * statement.materialized,
                    depends=query.depends,
                    query=statement.query.text,
                    sql=sql,
                    owner=catalog.role(settings["role"]).id,
                    schema=catalog.home(statement.name).id,
                )
                made.put(kept(item, statement, catalog))
                tag = "CREATE MATERIALIZED VIEW" if statement.materialized else "CREATE VIEW"
            case CreateSubscription():
                tag = "CREATE SUBSCRIPTION"
                item = ddl.create_subscription(statement, sql, catalog.along(listed(settings["search_path"])))
                subscriptions.begin(made.lake, item, made.writer.newest.n, made.writer.newest.time)
                made.put(replace(item, owner=catalog.role(settings["role"]).id))
            case CreateSecret() | CreateConnection():
                catalog, tag = catalog.along(listed(settings["search_path"])), "CREATE"
                item = (
                    ddl.create_secret(statement, sql, catalog, lambda value, id: f"sealed {id}")
                    if isinstance(statement, CreateSecret)
                    else ddl.create_connection(statement, sql, catalog)
                )
                made.put(replace(item, owner=catalog.role(settings["role"]).id))
            case Drop():
                change, notices = ddl.drop(statement, catalog.along(listed(settings["search_path"])))
                made.writer.append(kind="catalog", catalog=change)
                tag = f"DROP {statement.kind.upper()}"
            case CreateSchema():
                tag = "CREATE SCHEMA"
                change, notices = ddl.create_schema(statement, settings["role"], catalog)
                made.writer.append(kind="catalog", catalog=change)
            case AlterItem():
                tag = "ALTER"
                change, notices = ddl.alter(statement, catalog.along(listed(settings["search_path"])))
                made.writer.append(kind="catalog", catalog=change)
            case CreateRole() | AlterRole() | DropRole() | Grant() | GrantRole():
                tag, change, notices = ddl.change_roles(statement, catalog)
                made.writer.append(kind="catalog", catalog=change)
            case _:
                raise AssertionError(sql)
        newest = made.writer.newest
        return {"tag": tag, "n": newest.n, "time": newest.time, "notices": notices}

    def _newest(self, after: int, timeout: float) -> dict[str, Any]:
        header = self._live.made.lake.log.wait(after, 0.2) or self._live.made.writer.newest
        return {"n": header.n, "time": header.time}

    def stop(self) -> None:
        self._control.stop()
