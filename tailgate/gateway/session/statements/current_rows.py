"""WHERE CURRENT OF: the row of a table that a cursor has fetched last.

Source: PostgreSQL 15, src/backend/executor/execCurrent.c.
"""

from __future__ import annotations

import pyarrow as pa

from tailgate.gateway.results.rows import TableRows
from tailgate.gateway.serving.prepared import Prepared, origins, scans
from tailgate.gateway.session.statements.portals import Portals
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.errors import FeatureNotSupported, InvalidCursorState
from tailgate.sql import plan
from tailgate.sql import statements as s
from tailgate.sql.plan.writes import CurrentRow


def key(portals: Portals, catalog: Catalog, table: Table, current: CurrentRow) -> pa.Table:
    """Returns the key of the current row of a cursor, as one row. Raises 34000, 24000, and 0A000 if its query does not return the key."""
    portal = portals.find(current.cursor, "cursor")
    cursor = f'cursor "{current.cursor}"'
    if not isinstance(portal.bound.statement, s.Select):
        raise InvalidCursorState(f"{cursor} is not a SELECT query")
    if portal.held:
        raise InvalidCursorState(f"{cursor} is held from a previous transaction")
    places = _places(portal.bound.prepared, catalog, table, current.key, cursor)
    row = portal.rows.current if isinstance(portal.rows, TableRows) else None
    if row is None:
        raise InvalidCursorState(f"{cursor} is not positioned on a row")
    if None in places:
        raise FeatureNotSupported(
            f"WHERE CURRENT OF {cursor}, whose query does not return the primary key, is not supported",
            hint="Select all columns of the primary key.",
        )
    return row.select(places)


def _places(prepared: Prepared | None, catalog: Catalog, table: Table, key: tuple[int, ...], cursor: str) -> list[int | None]:
    """Returns the positions in the result of the columns of a table's key, None for one that is missing.

    Raises 24000 if not each row of the result has one row of the table.
    """
    if prepared is not None and prepared.locked:
        references = sum(scan.relation == table.id for scan in scans(prepared.query.plan))
        existing = [item for id in prepared.locked if (item := catalog.get(id)) is not None]  # the block may have dropped others
        locked = prepared.locked.union(*map(catalog.below, existing))  # views, and the tables below them
        if table.id not in locked or not references:
            raise InvalidCursorState(f'{cursor} does not have a FOR UPDATE/SHARE reference to table "{table.name}"')
        if references > 1:
            raise InvalidCursorState(f'{cursor} has multiple FOR UPDATE/SHARE references to table "{table.name}"')
    elif prepared is None or _scanned(prepared.query.plan) != table.id:
        raise InvalidCursorState(f'{cursor} is not a simply updatable scan of table "{table.name}"')
    columns = origins(prepared.query.plan)
    return [columns.index(column) if (column := (table.id, k + 1)) in columns else None for k in key]


def _scanned(relation: plan.Relation) -> int | None:
    """Returns the relation of which a query returns rows, each once; None for another query."""
    match relation:
        case plan.Scan(relation=id):
            return id
        case plan.Project(input=input) | plan.Filter(input=input) | plan.Sort(input=input) | plan.Limit(input=input):
            return _scanned(input)
        case plan.Join(left=left, kind="semi" | "anti"):
            return _scanned(left)
        case _:
            return None
