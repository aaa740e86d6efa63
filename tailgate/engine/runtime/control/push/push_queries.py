"""The views of push queries, and of pull queries of declared streams: each exists while the request of `POST /push` is open.

    POST /push ──► view in the catalog, filled ──► answer: the id of the view ──► the gateway follows it
                                                    └── the connection ends: the view is dropped

A gateway closes the connection when its query ends, and the kernel does so when the gateway is killed. If the engine is
killed, the next one drops the views (`Installation.recover`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from tailgate.engine import ddl
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.blocks.installing import install_filled
from tailgate.engine.runtime.control.blocks.planning import owner_id
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.recency import JoinedTables
from tailgate.engine.runtime.control.turns import turn
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, is_transient
from tailgate.lake.control import StatementRequest
from tailgate.lake.errors import ConfigurationLimitExceeded, FeatureNotSupported, TailgateError
from tailgate.sql.drop import removal
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.ksqldb.limits import with_limits
from tailgate.sql.ksqldb.queries.push import QUERY_NAME
from tailgate.sql.ksqldb.statements import PushQuery
from tailgate.sql.statements import FollowKsqldb, PullKsqldb, parse

log = logging.getLogger("tailgate.engine")

# views of push queries, of all roles and of one: each takes part in every tick, and holds a thread of the control interface
RUNNING_MAX, RUNNING_EACH = 100, 50

Items = Callable[[PushQuery, str, Catalog, Literal["earliest", "latest"], str], tuple[Item, ...]]


class PushQueries:
    """Creates and drops the views of push queries. Thread safe. `items`: makes the items of a query."""

    def __init__(self, installation: Installation, items: Items) -> None:
        self._installation, self._items = installation, items

    def begin(self, request: StatementRequest, client: Client) -> tuple[dict[str, Any], Callable[[], None]]:
        """Creates the view of a query. Returns the answer with its id when it is filled, and a function that drops it.

        Raises 53400 if too many push queries run.
        """
        statement, settings = parse(request.sql, HTTP), request.settings
        if not isinstance(statement, FollowKsqldb | PullKsqldb):
            raise FeatureNotSupported(f"{type(statement).__name__} is not a query")
        pushed = replace(statement.statement, query=with_limits(statement.statement.query, settings))
        is_earliest = isinstance(statement, PullKsqldb) or settings.get("auto.offset.reset") == "earliest"
        reset: Literal["earliest", "latest"] = "earliest" if is_earliest else "latest"
        installation, name = self._installation, settings.get(QUERY_NAME, "")
        tables = JoinedTables(installation.engine)
        while True:
            with turn(installation, client):
                committed = installation.engine.catalog
                catalog = committed.with_resolution(request.resolution)
                owner = owner_id(settings.get("role"), catalog)
                _check_limits(committed, owner)
                items = tuple(replace(item, owner=owner) for item in self._items(pushed, request.sql, catalog, reset, name))
                ddl.check_definitions(items, catalog)
                if tables.are_read(Change(put=items), catalog):
                    installed = install_filled(installation, Change(put=items), client)
                    break
            tables.wait(client)
        view = items[0].id
        return {**installed.answer("SELECT", client), "view": view}, lambda: self._end(view)

    def _end(self, view: int) -> None:
        """Drops the view of a push query, unless it was dropped meanwhile."""
        installation = self._installation
        try:
            with installation.lock:
                catalog = installation.engine.catalog
                if view in catalog.items:
                    change, _ = removal({view: catalog[view]}, catalog, [], cascade=True)
                    installation.install(change)
                    installation.settle()
        except TailgateError as error:
            log.warning("the view %s of a push query remains until the engine starts again: %s", view, error.message)


def _check_limits(catalog: Catalog, owner: int) -> None:
    owners = [view.owner for view in catalog.each(MaterializedView) if is_transient(view)]
    if len(owners) >= RUNNING_MAX or owners.count(owner) >= RUNNING_EACH:
        raise ConfigurationLimitExceeded(
            "too many push queries",
            detail=f"At most {RUNNING_MAX} can run, {RUNNING_EACH} of one role.",
            hint="End queries that are not used: SHOW QUERIES lists them.",
        )
