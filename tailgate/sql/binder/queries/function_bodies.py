"""Checks the bodies of user-defined SQL functions, for CREATE FUNCTION."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Function
from tailgate.lake.types import Field
from tailgate.sql.binder.context import Closure, Level
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.expressions.sql_functions import body_binder, default, rows, value
from tailgate.sql.binder.queries.queries import Queries
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.plan import Column, Project, Relation, Values
from tailgate.sql.plan.subqueries import Dependent, as_relation


def check_body(function: Function, tree: exp.Expr, catalog: Catalog) -> Names:
    """Binds a function's body over arguments of its types, and returns the names that it uses.

    Raises the errors of the body and of the defaults.
    """
    names = Names(catalog.stored)
    nowhere = Expressions(Scope(), Level(Queries(), names), aggregates=False)
    for argument, text in zip(function.arguments[len(function.arguments) - len(function.defaults) :], function.defaults, strict=True):
        default(nowhere, argument, text)
    columns = tuple(Column(i, t) for i, t in enumerate(function.types))
    arguments = Values((), function.arguments)
    inside = Names(catalog, used=names.used, inside=(function.id,), widths=function.known_columns, demands=names.demands)
    if function.rows is None:
        scalar = value(body_binder(nowhere, function.name, function, columns, inside), function, tree)
        plan: Relation = Project(arguments, (scalar,), (Field(function.name, scalar.type),))
    else:
        around = Closure(nowhere)
        within = replace(nowhere, level=Level(Queries(outer=around), names))
        captures = tuple(around.capture(c) for c in columns)
        plan = rows(body_binder(within, function.name, function, captures, inside), function, tree)
        plan = as_relation(Dependent(arguments, plan, around.depth, around.arguments(plan), "inner", None))
    decorrelate(plan)
    return inside
