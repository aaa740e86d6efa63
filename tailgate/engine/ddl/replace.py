"""CREATE OR REPLACE for views, materialized views and functions: the items with a new definition.

A plain view that no materialized view reads is replaced at once. Otherwise replacements of the view
and of the materialized views that read it are backfilled, and switched at one time
(`engine.plan.views.replacements`). A plain view may get additional columns at the end, as in PostgreSQL. A
materialized view may get any columns if nothing depends on it; it is then a new relation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailgate.engine.ddl.view import check_running, create_view, errors_item
from tailgate.engine.plan.views.replacements import readers, replacement
from tailgate.lake.catalog import Catalog, Change, Companion, Function, Item, MaterializedView, Sink, View, ViewErrors, skips
from tailgate.lake.catalog.dropping import described
from tailgate.lake.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    InvalidObjectDefinition,
    ObjectNotInPrerequisiteState,
    WrongObjectType,
)
from tailgate.sql.binder.expressions.sql_functions import tree_of
from tailgate.sql.binder.queries.function_bodies import check_body
from tailgate.sql.definitions import bind_definition
from tailgate.sql.statements import CreateView
from tailgate.sql.view_replacement import check_columns


def replace_view(statement: CreateView, text: str, catalog: Catalog, old: Item) -> tuple[Item, ...]:
    """Returns the items to put into the catalog, inputs before the views that read them.

    These are the view itself under its id, or replacements (`replaces`) without node numbers.
    """
    kind = "materialized view" if statement.materialized else "view"
    if old.kind != kind:
        raise WrongObjectType(f'"{old.name}" is not a {kind}', position=statement.name.position)
    new = create_view(statement, text, catalog, replacing=old)
    new = replace(new, owner=old.owner)
    if old.id in catalog.below(new):
        raise InvalidObjectDefinition(f'infinite recursion detected in rules for relation "{old.name}"')
    _check_no_sink(old, catalog)
    above = readers([old.id], catalog)
    _check_replaceable([old, *above], catalog)
    if kind == "view":
        check_columns(old.columns, new.columns)
    for item in _materialized(above):
        if skips(new) and not skips(item):
            raise FeatureNotSupported(f'a view that skips rows that fail, below "{item.name}", is not supported', hint="Drop that first.")
    if kind == "view":
        return replacements(replace(new, comments=old.comments), catalog, old)
    assert isinstance(new, MaterializedView)
    group = new.id
    first = replace(new, ready=False, replaces=old.id, group=group)
    put: list[Item] = [first]
    if (old.columns, old.key) != (new.columns, new.key):
        _check_alone(old, catalog)
        put = [replace(first, has_new_columns=True)]
        companions = [i for i in catalog.dependents(old.id) if isinstance(i, ViewErrors)]
        put += [replace(errors_item(new), replaces=i.id, ready=False, group=group, has_new_columns=True) for i in companions]
    return _with_readers(put, catalog, above)


def replacements(new: View | MaterializedView | Function, catalog: Catalog, old: Item) -> tuple[Item, ...]:
    """Returns the items that replace a plain view or a function with `new`; see `replace_view`."""
    above = readers([old.id], catalog)
    _check_replaceable([old, *above], catalog)
    if _materialized(above):
        return _with_readers([replace(new, ready=False, replaces=old.id, group=new.id)], catalog, above)
    changed = replace(new, id=old.id)
    _check_readers(catalog.apply(Change(put=(changed,))), above)
    return (changed,)


def _check_no_sink(view: Item, catalog: Catalog) -> None:
    """Raises 2BP01 for the view of a sink, whose query is that of the sink."""
    sink = next((sink for sink in catalog.each(Sink) if sink.query_view == view.id), None)
    if sink is not None:
        raise DependentObjectsStillExist(
            f"cannot replace {described(catalog, view)} because {described(catalog, sink)} requires it",
            hint=f"Drop {described(catalog, sink)}, and create it with the other query.",
        )


def _materialized(above: tuple[Item, ...]) -> list[MaterializedView]:
    """Returns the items that need a new backfill."""
    return [i for i in above if isinstance(i, MaterializedView)]


def _with_readers(put: list[Item], catalog: Catalog, above: tuple[Item, ...]) -> tuple[Item, ...]:
    """Adds replacements of the materialized views that read the first of these items."""
    group = put[0].id
    next_id = group + 2
    for item in _materialized(above):
        put.append(replacement(item, next_id, group))
        next_id += 2
    _check_readers(catalog.apply(Change(put=tuple(put))).replaced(), above)
    return tuple(put)


def _check_replaceable(items: list[Item], catalog: Catalog) -> None:
    """Raises 55000 if an item is being backfilled or replaced, or is paused."""
    check_ready(items, catalog)
    for item in items:
        check_running(item)


def check_ready(items: Iterable[Item], catalog: Catalog) -> None:
    """Raises 55000 if an item is being backfilled or replaced."""
    coming = catalog.replacements()
    for item in items:
        if not item.ready or item.id in coming:
            what = "replaced" if item.ready else "filled"
            raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being {what}', hint="Try again when it is ready.")


def _check_readers(catalog: Catalog, above: tuple[Item, ...]) -> None:
    """Raises 0A000 if the columns of a view above would change, as they would for `SELECT *`."""
    for item in above:
        if isinstance(item, Function):
            check_body(item, tree_of(item.query), catalog.stored)
            continue
        columns = bind_definition(item, catalog).columns
        if [c.type for c in columns] != [c.type for c in item.columns]:
            raise FeatureNotSupported(
                f'{item.kind} "{item.name}" selects all columns of the view, which are to be others',
                hint="Name the columns there, or drop it.",
            )


def _check_alone(old: Item, catalog: Catalog) -> None:
    """Raises 2BP01 if objects depend on a materialized view that gets other columns."""
    dependents = [i for i in catalog.dependents(old.id) if not isinstance(i, Companion)]
    if dependents:
        raise DependentObjectsStillExist(
            f"cannot change the columns of {old.kind} {old.name} because other objects depend on it",
            detail="\n".join(f"{i.kind} {i.name} depends on {old.kind} {old.name}" for i in dependents),
            hint="Drop them first, or create another view.",
        )
