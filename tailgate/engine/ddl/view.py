"""CREATE VIEW and CREATE MATERIALIZED VIEW: the view's catalog item."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.plan.analysis.keys import key
from tailgate.engine.plan.rules import compile
from tailgate.engine.plan.rules.change import SingleRow, leaves
from tailgate.engine.plan.views.digest import is_paused
from tailgate.engine.plan.views.streams import Streams, joins_in_order
from tailgate.lake.catalog import ERRORS, ROUNDS, Catalog, Change, Item, MaterializedView, View, ViewErrors, ksqldb_of, skips
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue, ObjectNotInPrerequisiteState
from tailgate.lake.readers.failed import failure
from tailgate.sql.bind import bind_view
from tailgate.sql.binder.writes.updatable_views import check_option
from tailgate.sql.definitions import stored_view
from tailgate.sql.new_items import normalized, schema_for
from tailgate.sql.numeric_types import EXACT, MAINTAINED
from tailgate.sql.statements import CreateView

ROUNDS_MAX = 1_000_000  # a tick passes through all of them, and other views wait for it


def create_view(
    statement: CreateView, text: str, catalog: Catalog, *, replacing: Item | None = None, numeric_rules: int = MAINTAINED
) -> View | MaterializedView:
    """Returns the item of a view; `text` is the statement as typed. A view that is replaced keeps older rules of numerics.

    A materialized view is compiled, so a query that cannot be maintained raises 0A000 here.
    """
    schema = catalog.home(statement.name) if replacing is not None else schema_for(statement.name, catalog)
    options = _view_options(statement)
    earlier = replacing.numeric_rules if isinstance(replacing, View | MaterializedView) else numeric_rules
    rules = min(numeric_rules, max(earlier, EXACT))  # its columns keep their types
    query = bind_view(statement, catalog, rules)
    id, name = catalog.next_id, statement.name.name
    stored, text = stored_view(statement, text)
    item = normalized(
        View(id, name, query.columns, depends=query.depends, sql=text, query=stored.query.text, schema=schema.id, numeric_rules=rules),
        stored,
        catalog,
    )
    if not statement.materialized:
        plain = replace(item, check_option=statement.check_option)
        check_option(plain, catalog.stored.apply(Change(put=(plain,))))
        return plain
    if not query.columns:
        raise InvalidObjectDefinition("a materialized view needs a column at least")
    if replacing is None:
        catalog.check_new(errors_name(name), schema)
    view = MaterializedView(
        id,
        name,
        item.columns,
        key(query.plan),
        stored=True,
        errors=id + 1,
        depends=item.depends,
        sql=item.sql,
        query=item.query,
        schema=item.schema,
        numeric_rules=item.numeric_rules,
        on_error=options.on_error,
        retain_history_ms=options.retain_history_ms,
        recursion_limit=options.recursion_limit,
    )
    after = catalog.stored.apply(Change(put=(view,)))
    stream = compile.stream(query.plan, after, Streams(after))  # of the text as typed, for the positions in errors
    replacements = catalog.replacements()
    for replaced in (catalog[i] for i in sorted(catalog.below(item)) if i in replacements):
        message = f'{replaced.kind} "{replaced.name}" is still being replaced'
        raise ObjectNotInPrerequisiteState(message, hint="Create the view when it is ready.")
    for base in (catalog[leaf.item] for leaf in leaves(stream) if not isinstance(leaf, SingleRow)):
        if skips(base) and not skips(view):
            raise FeatureNotSupported(
                f'a view that fails over "{base.name}", which skips rows that fail, is not supported',
                hint="Create it WITH (on_error = 'skip'), too.",
            )
        check_base(base)
    _check_no_paused_stream(view, after)
    return view


def check_base(item: Item) -> None:
    """Raises 55000 if no view can be filled from the item: it has failed, or is being filled. One whose query is paused has rows."""
    _check_not_failed(item)
    if not item.ready:
        raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being filled', hint="Create the view when it is ready.")


def _check_no_paused_stream(view: MaterializedView, catalog: Catalog) -> None:
    """Raises 0A000 for a join of a stream if a query below it is paused: the records that arrive meanwhile would join out of order."""
    paused = (ksqldb_of(catalog[id]) for id in sorted(catalog.below(view)) if is_paused(catalog[id]))
    query = next((ksqldb.query for ksqldb in paused if ksqldb is not None and ksqldb.query), "")
    if query and joins_in_order(view, catalog):
        message = f"a join of a stream above query {query}, which is paused, is not supported"
        raise FeatureNotSupported(message, hint=f"RESUME {query} first.")


def check_maintained(item: Item) -> None:
    """Raises 55000 if no tick changes a view: it has failed, or its query is paused or terminated."""
    _check_not_failed(item)
    check_running(item)


def _check_not_failed(item: Item) -> None:
    if (why := failure(item)) is not None:
        again = "Make it run again first: CREATE OR REPLACE MATERIALIZED VIEW."
        raise ObjectNotInPrerequisiteState(why.message, hint=again if ksqldb_of(item) is None else "Drop it, and create it again.")


def check_running(item: Item) -> None:
    """Raises 55000 if the query of ksqlDB that maintains the view is paused or terminated."""
    if is_paused(item):
        ksqldb = ksqldb_of(item)
        query = ksqldb.query if ksqldb is not None else ""
        what = f"query {query} is paused" if query else f'the query of "{item.name}" is terminated'
        raise ObjectNotInPrerequisiteState(what, hint=f"RESUME {query} first." if query else "DROP it and create it again.")


def with_errors(view: MaterializedView) -> tuple[MaterializedView, ViewErrors]:
    """Returns a new view that waits for its fill, and the relation of its errors."""
    return replace(view, ready=False), errors_item(view)


def errors_item(view: MaterializedView) -> ViewErrors:
    """Returns the relation of a view's errors. Its rows are in the log; the item gives them a name."""
    return ViewErrors(
        view.errors,
        errors_name(view.name),
        ERRORS,
        stored=True,
        depends=(view.id,),
        sql=view.sql,
        owner=view.owner,
        schema=view.schema,
    )


def errors_name(view: str) -> str:
    """Returns the name of the relation of a view's errors."""
    return f"{view}_errors"


class _Options(NamedTuple):
    """The options of a materialized view."""

    on_error: Literal["fail", "skip"]
    retain_history_ms: int
    recursion_limit: int


def _view_options(statement: CreateView) -> _Options:
    """Returns the options of a view. Raises 0A000 or 22023."""
    on_error: Literal["fail", "skip"] = "fail"
    limit = ROUNDS
    retention, others = split_retention(statement.options) if statement.materialized else (0, statement.options)
    for name, value in others:
        if name not in ("on_error", "recursion_limit") or not statement.materialized:
            raise FeatureNotSupported(f'option "{name}" of a {"materialized " * statement.materialized}view is not supported')
        if name == "recursion_limit":
            limit = _recursion_limit(value)
            continue
        if value not in ("fail", "skip"):
            raise InvalidParameterValue(f'invalid value for option "on_error": "{value}"', hint="Use 'fail' or 'skip'.")
        on_error = "skip" if value == "skip" else "fail"
    return _Options(on_error, retention, limit)


def _recursion_limit(value: object) -> int:
    """Returns the number of rounds that a recursive query may need. Raises 22023."""
    text = str(value)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= ROUNDS_MAX:
        raise InvalidParameterValue(f'invalid value for option "recursion_limit": "{value}"', hint=f"Use a number from 1 to {ROUNDS_MAX}.")
    return int(text)
