"""CREATE VIEW and CREATE MATERIALIZED VIEW: the view's item."""

from __future__ import annotations

from sql.bind import bind_query

from engine.ddl.names import check_columns, check_new
from engine.plan.change import leaves
from engine.plan.keys import key
from engine.plan.plans import Streams, bound
from engine.plan.relations import walk as relations
from lake.catalog import Catalog, Change, Item
from lake.errors import FeatureNotSupported, InvalidObjectDefinition, ObjectNotInPrerequisiteState, SyntaxError_, UndefinedParameter
from lake.types import Field
from sql import plan
from sql.rewrite import walk as scalars
from sql.statements import CreateView


def create_view(statement: CreateView, text: str, catalog: Catalog) -> Item:
    """The item of a view; `text` is the statement as typed. A materialized view is compiled, so what cannot be kept is refused here."""
    check_new(statement.name, catalog)
    if statement.options and not statement.materialized:
        raise FeatureNotSupported("options of a view that is not materialized are not supported")
    for name, _ in statement.options:
        raise FeatureNotSupported(f'option "{name}" of a materialized view is not supported')
    query = bind_query(statement.query, catalog)
    if query.parameters:
        raise UndefinedParameter("there is no parameter $1", hint="A view's query cannot have parameters.")
    columns = _columns(statement, query.columns)
    check_columns(columns)
    id = catalog.next_id
    item = Item(id, "view", statement.name.name, columns, depends=query.depends, sql=text, query=statement.query.text)
    if not statement.materialized:
        return item
    if not columns:
        raise InvalidObjectDefinition("a materialized view needs a column at least")
    _refuse_unstable(query.plan)
    view = Item(
        id,
        "materialized view",
        statement.name.name,
        columns,
        key=key(query.plan),
        stored=True,
        errors=id + 1,
        depends=query.depends,
        sql=text,
        query=statement.query.text,
    )
    stream = Streams(catalog.apply(Change(put=(view,))), lambda i, c: query.plan if i.id == id else bound(i, c))(view)
    for leaf in leaves(stream):
        base = catalog[leaf.item]
        if not base.ready:
            raise ObjectNotInPrerequisiteState(f'{base.kind} "{base.name}" is still being filled', hint="Create the view when it is ready.")
    return view


def _columns(statement: CreateView, given: tuple[Field, ...]) -> tuple[Field, ...]:
    if len(statement.columns) > len(given):
        raise SyntaxError_("CREATE VIEW specifies more column names than columns")
    names = [*statement.columns, *(f.name for f in given[len(statement.columns) :])]
    return tuple(Field(n, f.type, f.nullable) for n, f in zip(names, given, strict=True))


def _refuse_unstable(relation: plan.Relation) -> None:
    """A view's row depends on its input alone; now() would have to change rows without any."""
    for node in relations(relation):
        for scalar in _scalars(node):
            for part in scalars(scalar):
                if isinstance(part, plan.Call) and part.function.volatility != "immutable":
                    raise FeatureNotSupported(
                        f"{part.function} in a materialized view is not supported",
                        detail=f"It is {part.function.volatility}: its result depends on more than its arguments.",
                        position=part.position,
                    )


def _scalars(node: plan.Relation) -> tuple[plan.Scalar, ...]:
    match node:
        case plan.Filter(condition=condition):
            return (condition,)
        case plan.Project(expressions=expressions):
            return expressions
        case plan.Join(condition=condition):
            return () if condition is None else (condition,)
        case plan.Aggregate(keys=keys, aggregates=aggregates):
            return keys + tuple(a for call in aggregates for a in (*call.arguments, *((call.filter,) if call.filter is not None else ())))
        case _:
            return ()
