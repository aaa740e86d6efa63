"""TERMINATE, PAUSE and RESUME of persistent queries: the views that they change.

    running ──PAUSE──► paused ──RESUME──► running, after its view is filled again in the background
       └──────TERMINATE──┴──► terminated: the view and its topic stay, without a query

No tick changes the view of a paused query, so its sink has nothing to write. Views above a paused or terminated query keep their rows
and run on. Those above a resumed query are filled again (engine.runtime.backfill.resuming).
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.replace import check_ready
from tailgate.engine.ddl.view import check_base
from tailgate.engine.plan.views.inserts import separated, target_of
from tailgate.engine.plan.views.replacements import readers, stored_inputs
from tailgate.engine.plan.views.stopped_inputs import continued, maintained_readers, sharing
from tailgate.engine.plan.views.streams import joins_in_order
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, is_transient
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import DependentObjectsStillExist, FeatureNotSupported, UndefinedObject
from tailgate.sql.drop import removal
from tailgate.sql.statements import ControlQueries


def query_view(id: str, catalog: Catalog, missing: str = "Unknown queryId: {}") -> MaterializedView:
    """Returns the view of the query with this id. Raises 42704, with the message `missing`, if no query has it."""
    item = catalog.find_query(id)
    if item is None:
        raise UndefinedObject(missing.format(id), hint="SHOW QUERIES lists the queries.")
    return catalog.expect(MaterializedView, item.id)


def explained(id: str, catalog: Catalog) -> MaterializedView:
    """Returns the view of the query of EXPLAIN. Raises 42704 if no query has this id."""
    return query_view(id, catalog, "Query with id:{} does not exist, use SHOW QUERIES to view the full set of queries.")


def controlled(statement: ControlQueries, role: int, catalog: Catalog) -> tuple[MaterializedView, ...]:
    """Returns the views of the queries that a statement names, inputs before the views that read them.

    ALL names the persistent queries that the role owns, for a superuser all. Raises 42704 if no query has the id.
    """
    if statement.query is not None:
        return (query_view(statement.query, catalog),)
    roles, acting = catalog.all_roles(), catalog.acting(role)
    is_superuser = role in roles and roles[role].superuser
    views = [i for i in catalog.queries.values() if isinstance(i, MaterializedView) and not is_transient(i)]
    views = [view for view in views if is_superuser or view.owner in acting]
    return tuple(sorted(views, key=lambda view: len(catalog.below(view))))


def stopped(views: tuple[MaterializedView, ...], catalog: Catalog, *, ends: bool) -> Change:
    """Returns the change of PAUSE, or with `ends` that of TERMINATE, which drops the views of INSERT INTO … SELECT and of push queries.

    Raises 2BP01 if views above them share operators with views that are not, and for PAUSE 0A000 if one of all these joins a stream.
    """
    check_ready(views, catalog)
    before = catalog
    ids = {view.id for view in views}
    for view in views:
        if not ends and is_transient(view):
            raise FeatureNotSupported("PAUSE of a push query is not supported", hint="TERMINATE it, or end its client.")
        above = [i for i in maintained_readers([view.id], catalog) if i.id not in ids and not (ends and is_transient(i))]
        if not ends:
            _check_no_join(view, above, catalog)
        check_ready(above, catalog)
        if (above := sharing(above, catalog)) and not (ends and target_of(view, catalog) is not None):
            word = "terminate" if ends else "pause"
            raise DependentObjectsStillExist(
                f"cannot {word} query {_query(view)} because other objects depend on it",
                detail="\n".join(f"{i.kind} {i.name} depends on {view.kind} {view.name}" for i in above),
                hint=f"{word.upper()} the queries of these first.",
            )
    targets: dict[int, MaterializedView] = {}
    for view in views if ends else ():
        if (target := target_of(view, catalog)) is not None:
            check_ready([target, *readers([target.id], catalog)], catalog)
            targets[target.id] = separated(view, targets.get(target.id, target), catalog)
    catalog = catalog.apply(Change(put=tuple(targets.values())))
    views = tuple(targets.get(view.id, view) for view in views)
    going: dict[int, Item | Schema] = {v.id: v for v in views if ends and v.ksqldb is not None and (v.ksqldb.into or is_transient(v))}
    dropped, _ = removal(going, catalog, [], cascade=False)
    paused = [replace(view, paused=True) for view in views if view.id not in dropped.drop]
    put = (replace(v, ksqldb=replace(v.ksqldb, query="")) if ends and v.ksqldb is not None else v for v in paused)
    streams = (target for id, target in targets.items() if id not in ids)
    change = replace(dropped, put=(*dropped.put, *streams, *put))
    planned_anew = {*targets, *(i.id for i in readers(targets, catalog)), *ids, *change.drop}
    above = [i for i in maintained_readers(ids, before) if i.id not in planned_anew]
    return replace(change, put=(*change.put, *continued(above, before.apply(change))))


def paused(views: tuple[MaterializedView, ...], catalog: Catalog) -> tuple[MaterializedView, ...]:
    """Returns those of the views whose queries are paused. Raises 55000 if they, or views above them, cannot be filled again now."""
    waiting = tuple(view for view in views if view.paused)
    ids = {view.id for view in waiting}
    check_ready(maintained_readers(ids, catalog), catalog)
    for view in waiting:
        check_ready((view, *(catalog[id] for id in sorted(catalog.below(view) - ids))), catalog)
        for id in sorted(stored_inputs(view, catalog) - ids):
            check_base(catalog[id])
    return waiting


def _check_no_join(view: MaterializedView, above: list[MaterializedView], catalog: Catalog) -> None:
    """Raises 0A000 if a view, or one above it, joins a stream."""
    for joining in (i for i in (view, *above) if joins_in_order(i, catalog)):
        where = "" if joining is view else f'is below "{joining.name}", which '
        raise FeatureNotSupported(
            f"PAUSE of query {_query(view)}, which {where}joins a stream, is not supported",
            hint="TERMINATE it: RESUME could not process the records that arrive meanwhile in their order.",
        )


def _query(view: MaterializedView) -> str:
    return view.ksqldb.query if view.ksqldb is not None else view.name
