"""The rows of the relations of the schema `tailgate` that a role may see, computed when a statement reads them.

a statement ──► engine's status, other gateways, files of the lake ──► rows, which the snapshot of the statement reads
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.catalog.relations import item_status
from tailgate.gateway.execute.monitoring.restrictions import NONE, Restriction, restrictions
from tailgate.gateway.execute.monitoring.states import alert_rows, hold_rows, objective_states, subscription_states
from tailgate.gateway.freshness import rows as freshness
from tailgate.gateway.mirrors.overlay import UncommittedChanges
from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.session import Session
from tailgate.lake.catalog import SYSTEM_RELATIONS, Catalog, Item
from tailgate.lake.catalog.roles import Role
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.types import JSONB, arrow_schema
from tailgate.operations.watch import history
from tailgate.sql.authorization import may_see
from tailgate.sql.system_queries import HISTORY
from tailgate.values.strings.jsonb import canonical

SOURCES = SYSTEM_RELATIONS["sources"].id
Rows: TypeAlias = "list[dict[str, Any]] | pa.Table"


class SystemRelations:
    """The rows of the relations of the schema tailgate that a role may see. Its methods run on a thread."""

    def __init__(self, gateway: Gateway, role: Role, catalog: Catalog) -> None:
        self._gateway, self._role, self._catalog = gateway, role, catalog
        self._requester = Requester(role.id, role.superuser)

    def rows(self, name: str, status: Mapping[str, Any], restriction: Restriction = NONE) -> Rows:
        """Returns the rows of a relation, at least those that a restriction allows, with at least the columns that it reads.

        `status`: the engine's, for relations in ASK_ENGINE; empty if it does not run.
        """
        gateway, catalog = self._gateway, self._catalog
        match name:
            case "internal_errors":
                errors = [*gateway.internal_errors.rows(), *gateway.peers.internal_errors()]
                return item_status.internal_errors(errors, status.get("internal_errors", ()))
            case "dependencies":
                return item_status.dependencies(catalog)
            case "statements":
                statements = [*gateway.statement_rows(self._requester), *gateway.peers.statements(self._requester)]
                return item_status.with_moments(statements)
            case "freshness":
                lags, shown = gateway.serving.freshness.lags, self._shown(restriction)
                return freshness.rows(lags, gateway.serving.progress.catalog, shown, restriction.reads)
            case "freshness_history" | "size_history":
                shown = self._shown(restriction)
                recorded = history.read(
                    gateway.lake, [item.id for item in shown] if restriction.texts else None, restriction.since.get("at")
                )
                recorded = recorded if name == "freshness_history" else recorded.filter(pc.field("bytes").is_valid())
                return freshness.history(recorded, gateway.serving.progress.catalog, shown)
            case "holds":
                return hold_rows(gateway.lake, catalog)
            case "alerts":
                return alert_rows(gateway.notifications.all(), superuser=self._role.superuser)
            case "subscriptions":
                status = {"subscriptions": subscription_states(gateway.lake, catalog)}
            case "objectives":
                status = {"objectives": objective_states(gateway.lake, catalog)}
        return item_status.table(name, catalog, status, self._may_see)

    def _may_see(self, item: Item) -> bool:
        return may_see(item, self._role, self._catalog)

    def _shown(self, restriction: Restriction) -> list[Item]:
        """Returns the relations with a freshness lag that the role may read and a restriction allows."""
        catalog = self._gateway.serving.progress.catalog
        items = history.relations(catalog)
        allowed = (i for i in items if restriction.allows(schema=catalog.schema_of(i).name, name=i.name, kind=i.kind))
        return [item for item in allowed if self._may_see(item)]

    async def changes(
        self, relations: Iterable[int], query: Prepared | None = None, values: Sequence[object] = ()
    ) -> dict[int, UncommittedChanges]:
        """Returns the rows of those of the relations that belong to the schema, for `Snapshot.write`.

        `query`: the only query that reads them, with the values of its parameters; rows that cannot be in its result may be missing.
        """
        ids = frozenset(filter(is_system, relations))
        if not ids:
            return {}
        of = {} if query is None else await restrictions(self._gateway.serving, query, values, self._catalog.time_zone)
        lags = SOURCES in ids and of.get(SOURCES, NONE).reads("lag")
        status = await self._gateway.control.status(lags=lags) if ids & item_status.ASK_ENGINE else {}
        items = [item for item in SYSTEM_RELATIONS.values() if item.id in ids]
        return await self._gateway.serving.system.call(
            lambda: {i.id: _changes(i, self.rows(i.name, status, of.get(i.id, NONE))) for i in items}
        )

    def next_steps(self, after: int) -> tuple[int, UncommittedChanges]:
        """Returns the rows of tailgate.freshness_history of the next steps after a time, for `Snapshot.write`, and the time of the last.

        The time is `after` without later steps.
        """
        recorded = history.read_next(self._gateway.lake, after)
        at = after if recorded.num_rows == 0 else int(pc.max(recorded["at"]).cast(pa.timestamp("ms", "UTC")).value)
        rows = freshness.history(recorded, self._gateway.serving.progress.catalog, self._shown(NONE))
        return at, _changes(HISTORY, rows)


def of_session(session: Session) -> SystemRelations:
    """Returns the relations as the present role of a session sees them."""
    return SystemRelations(session.gateway, session.access.role, session.catalog)


async def changes(
    session: Session, relations: Iterable[int], query: Prepared | None = None, values: Sequence[object] = ()
) -> dict[int, UncommittedChanges]:
    """Returns the rows of the relations of the schema that a statement of the session reads; none for most statements.

    `query`, `values`: as in `SystemRelations.changes`.
    """
    ids = [*filter(is_system, relations)]
    return await of_session(session).changes(ids, query, values) if ids else {}


def _changes(item: Item, rows: Rows) -> UncommittedChanges:
    """Returns rows of a relation as a snapshot shows them."""
    return UncommittedChanges(item, _stored(item, rows))


def _stored(item: Item, rows: Rows) -> pa.Table:
    """Returns rows in stored form, with all columns of the relation."""
    schema = arrow_schema(item.columns)
    if isinstance(rows, pa.Table):
        return rows.select(schema.names).cast(schema)
    texts = [column.name for column in item.columns if column.type == JSONB]
    return pa.Table.from_pylist([{**row, **{name: canonical(row[name]) for name in texts}} for row in rows], schema=schema)
