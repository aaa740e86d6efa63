"""Binds a query: turns its syntax tree into a typed plan.

QueryText ──► binder ──► decorrelate ──► plan.null_folding ──► Query(plan, columns, parameters, depends)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, IndeterminateDatatype, SyntaxError_
from tailgate.lake.types import TEXT, UNKNOWN, Field, Type
from tailgate.sql.binder.queries.full_columns import with_full_columns
from tailgate.sql.binder.queries.queries import Queries
from tailgate.sql.binder.relation_names import NO_WIDTHS, Names
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.writes.writes import Writes
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_query
from tailgate.sql.numeric_types import EXACT, MAINTAINED, typed_by
from tailgate.sql.plan import Query
from tailgate.sql.plan.null_folding import fold_nulls
from tailgate.sql.statements.definitions import CreateView
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import Delete, Insert, Update


def bind_query(
    query: QueryText | str,
    catalog: Catalog,
    parameters: tuple[Type, ...] | None = (),
    *,
    view: bool = False,
    widths: Mapping[int, int] = NO_WIDTHS,
    numeric_rules: int = EXACT,
    locking: bool = False,
) -> Query:
    """Returns the bound query. Errors have a SQLSTATE and a position in the statement of the query.

    `parameters`: the declared types of $1, $2, …, UNKNOWN for those to infer; None if parameters are not
    allowed, as in a simple query. `view`: the query of a view, which may use neither parameters nor
    volatile functions. `widths`: the number of columns that relations had when the query was typed, if
    columns were added since (`lake.catalog.known_columns`). `numeric_rules`: see
    `sql.numeric_types`. `locking`: whether FOR UPDATE is allowed.
    """
    tree = _tree(query)
    types = Parameters(parameters or (), parameters is not None and not view)
    names = Names(catalog, widths=widths, locked={} if locking else None)
    with typed_by(numeric_rules):
        bound = Queries(types, view).query(tree, names)
    plan = fold_nulls(decorrelate(with_full_columns(bound) if view else bound))
    for number, type in enumerate(types.types, 1):
        if type == UNKNOWN:
            place = next((position(p) for p in tree.find_all(exp.Parameter) if p.name == str(number)), None)
            raise IndeterminateDatatype(f"could not determine data type of parameter ${number}", position=place)
    return Query(
        plan,
        plan.columns,
        tuple(types.types),
        tuple(names.used),
        tuple(names.places.items()),
        names.demanded(),
        frozenset(names.locked or ()),
    )


def bind_write(
    statement: Insert | Update | Delete, catalog: Catalog, parameters: tuple[Type, ...] = (), widths: Mapping[int, int] = NO_WIDTHS
) -> Query:
    """Returns a statement with RETURNING as a query: the plan of its rows, and the columns of RETURNING.

    The arguments are those of `bind_query`.
    """
    binder = Writes(catalog, parameters, widths)
    match statement:
        case Insert():
            inserted = binder.insert(statement)
            assert inserted.rows is not None and inserted.returning is not None
            plan, columns, types, demands = inserted.rows, inserted.returning.columns, inserted.parameters, inserted.demands
        case Update() | Delete():
            changed = binder.update(statement) if isinstance(statement, Update) else binder.delete(statement)
            assert changed.returning is not None
            if changed.current is not None:
                raise FeatureNotSupported("WHERE CURRENT OF in an endpoint is not supported", hint="A request has no cursors.")
            plan, columns, types, demands = changed.rows, changed.returning.columns, changed.parameters, changed.demands
    types = tuple(TEXT if type == UNKNOWN else type for type in types)
    return Query(plan, columns, types, tuple(binder.names.used), tuple(binder.names.places.items()), demands)


def bind_view(statement: CreateView, catalog: Catalog, numeric_rules: int = MAINTAINED) -> Query:
    """Binds the query of CREATE VIEW and names its columns as in the statement.

    Raises 42601 if the statement names too many columns, and 42701 if a name occurs twice.
    """
    bound = bind_query(statement.query, catalog, view=True, numeric_rules=numeric_rules)
    if len(statement.columns) > len(bound.columns):
        raise SyntaxError_("CREATE VIEW specifies more column names than columns")
    named_columns = tuple(Field(n, f.type, f.nullable) for n, f in zip(statement.columns, bound.columns, strict=False))
    columns = named_columns + bound.columns[len(named_columns) :]
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            raise DuplicateColumn(f'column "{column.name}" specified more than once')
        names.add(column.name)
    return replace(bound, columns=columns)


def _tree(query: QueryText | str) -> exp.Expr:
    """Returns the tree of a query, which is parsed if it is a string."""
    if isinstance(query, QueryText):
        return query.tree
    return parse_query(query)
