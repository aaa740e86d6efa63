"""INSERT into a derived stream: its view reads the views of these queries, too, and the table with the rows of INSERT … VALUES.

    INSERTQUERY_n  ──► view insertquery_n, filled alone ──► ready: its rows are added to the stream, whose query ends with
                                                            UNION ALL SELECT … FROM insertquery_n
    TERMINATE      ──► the stream keeps its rows, and its query is without this part

    INSERT … VALUES ──► table name_inserted, a part of the stream's query since the first statement; dropped with the stream

One entry of the log has the rows, the stream's new query and the readiness of the view.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.views.replacements import readers, stored_inputs
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Table, ksqldb_of
from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.readers.failed import failure
from tailgate.sql.definitions import bind_definition


def target_of(view: MaterializedView, catalog: Catalog) -> MaterializedView | None:
    """Returns the derived stream that the query of a view inserts into; None for a declared stream, and for other views."""
    ksqldb = ksqldb_of(view)
    target = catalog.items.get(ksqldb.into) if ksqldb is not None and ksqldb.into else None
    return target if isinstance(target, MaterializedView) else None


def needed(view: Item, catalog: Catalog) -> set[int]:
    """Returns the ids of the items that must be ready before a filled view is: those that it reads.

    For the view of an INSERT they include the stream that gets its rows, and the views above the stream.
    """
    target = target_of(view, catalog) if isinstance(view, MaterializedView) else None
    return stored_inputs(view, catalog) | (set() if target is None else {target.id, *(i.id for i in maintained_above(target, catalog))})


def maintained_above(target: MaterializedView, catalog: Catalog) -> list[MaterializedView]:
    """Returns the views above a stream that ticks change, now or when their replacements are filled, as after RESUME."""
    above, coming = readers([target.id], catalog), catalog.replacements()
    return [i for i in above if isinstance(i, MaterializedView) and failure(i) is None and (not i.paused or i.id in coming)]


def united(view: MaterializedView, catalog: Catalog) -> MaterializedView | None:
    """Returns the derived stream that a view inserts into with a query that reads the view, or None if there is no such stream."""
    target = target_of(view, catalog)
    if target is None or view.id in target.depends:
        return None
    return with_rows_of(view, target, catalog)


def with_rows_of(relation: MaterializedView | Table, target: MaterializedView, catalog: Catalog) -> MaterializedView:
    """Returns a derived stream with a query that reads a relation, too."""
    part = _part(relation, target, catalog)
    new = replace(target, query=target.query + part, sql=target.sql + part, depends=(*target.depends, relation.id))
    return replace(new, columns=bind_definition(new, catalog.apply(Change(put=(relation, new)))).columns)


def separated(view: MaterializedView, target: MaterializedView, catalog: Catalog) -> MaterializedView:
    """Returns a derived stream with a query that no longer reads a view. Raises 55000 if its text has changed since."""
    part = _part(view, target, catalog)
    if part not in target.query or part not in target.sql:
        raise ObjectNotInPrerequisiteState(
            f'the query of "{target.name}" cannot be changed, because "{view.name}" was renamed',
            hint="Give the view its old name first.",
        )
    query, sql = (text.replace(part, "", 1) for text in (target.query, target.sql))
    return replace(target, query=query, sql=sql, depends=tuple(id for id in target.depends if id != view.id))


def _part(relation: MaterializedView | Table, target: MaterializedView, catalog: Catalog) -> str:
    name = catalog.stored.name_of(relation).sql
    return f" UNION ALL SELECT {', '.join(quoted(column.name) for column in target.columns)} FROM {name}"
