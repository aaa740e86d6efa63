"""Functions in FROM: joins each input row with the rows that the function returns for it."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Function
from tailgate.lake.errors import FeatureNotSupported, InvalidColumnReference, SyntaxError_
from tailgate.lake.types import INT8, Field
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.expressions import sql_functions
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.json.records import FUNCTIONS, POPULATE
from tailgate.sql.binder.queries.output_columns import column_name
from tailgate.sql.binder.queries.record_functions import bind_populating, bind_record_function, check_definitions
from tailgate.sql.binder.scope import Scope
from tailgate.sql.binder.set_returning import in_step
from tailgate.sql.binder.types.coercion import from_name
from tailgate.sql.binder.types.overloads import arguments, function, specialized
from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Call, Generate, Literal, Project, Relation, Scalar
from tailgate.sql.plan.rows import is_row


def bind_function(node: exp.Expr, binder: Expressions, input: Relation) -> tuple[Relation, Scope]:
    """Binds a function over the rows of `input`, whose columns `binder` knows.

    Returns the plan and a scope of the function's columns only. As in PostgreSQL, the column of a
    function with one column is named like the alias. Raises 0A000.
    """
    call, at = node.this, position(node.this)
    if isinstance(call, exp.Anonymous) and (items := sql_functions.named_functions(binder, call)):
        return _routine(node, call, binder, items)
    shown, names = _alias(node, str(call.this))
    if isinstance(call, exp.Anonymous):
        check_definitions(str(call.this), names, at)
        if call.this in FUNCTIONS:
            return _record(node, call, names, binder, input)
        if call.this in POPULATE and not node.args.get("ordinality"):
            plan = bind_populating(call, binder, input)
            return plan, _scope(shown, plan.columns, tuple(n.name for n in names), str(call.this))
    ordinality = bool(node.args.get("ordinality"))
    if not isinstance(call, exp.Anonymous) or all(r.kind != "set" for r in catalogue.calls(str(call.this))):
        return _scalar(node, call, binder, input, ordinality)
    if call.this == "unnest" and len(call.expressions) > 1:
        plan = in_step(input, [_call(binder, call, [n]) for n in call.expressions], ordinality=ordinality)
    else:
        one = _call(binder, call, call.expressions)
        outputs = tuple(Field(n, from_name(t)) for n, t in one.function.outputs) or (Field(shown, one.type),)
        plan = Generate(input, one.function, one.arguments, outputs, ordinality, position=at)
    outputs = plan.outputs
    columns = outputs + ((Field("ordinality", INT8, False),) if plan.ordinality else ())
    scope = scopes.of(shown, columns, tuple(n.name for n in names), str(call.this))
    (table,) = scope.tables
    return plan, replace(scope, tables=(replace(table, value=len(columns) == 1),))


def _scalar(node: exp.Expr, call: exp.Expr, binder: Expressions, input: Relation, ordinality: bool) -> tuple[Relation, Scope]:
    """Binds a function that returns one value: a row with it. Raises 0A000."""
    value = binder.typed(call)
    if is_row(value.type):
        raise FeatureNotSupported("a function in FROM that returns one row is not supported", position=position(call))
    function = column_name(call, value)
    shown, names = _alias(node, function)
    fields: tuple[Field, ...] = (Field(shown, value.type),)
    values: tuple[Scalar, ...] = (value,)
    if ordinality:
        fields, values = (*fields, Field("ordinality", INT8, False)), (*values, Literal(1, INT8))
    scope = _scope(shown, fields, tuple(n.name for n in names), function)
    (table,) = scope.tables
    return Project(input, values, fields), replace(scope, tables=(replace(table, value=not ordinality),))


def _record(node: exp.Expr, call: exp.Anonymous, names: list[exp.Expr], binder: Expressions, input: Relation) -> tuple[Relation, Scope]:
    """Binds a function with a column definition list. Raises 42601."""
    if node.args.get("ordinality"):
        raise SyntaxError_(
            "WITH ORDINALITY cannot be used with a column definition list",
            hint="Put the column definition list inside ROWS FROM().",
            position=position(names[0].this),
        )
    plan = bind_record_function(call, names, binder, input)
    return plan, _scope(_alias(node, str(call.this))[0], plan.columns, (), str(call.this))


def _alias(node: exp.Expr, function: str) -> tuple[str, list[exp.Expr]]:
    """Returns the name of a function's rows, `function` without an alias, and the new names of its columns or their definitions."""
    alias = node.args.get("alias")
    if alias is None:
        return function, []
    return alias.name or function, list(alias.args.get("columns") or [])


def _scope(shown: str, columns: tuple[Field, ...], names: tuple[str, ...], function: str) -> Scope:
    """Returns the scope of a function's columns, whose first ones have new names. Raises 42P10."""
    if len(names) > len(columns):
        raise InvalidColumnReference(f'table "{shown}" has {len(columns)} columns available but {len(names)} columns specified')
    return scopes.of(shown, columns, names, function)


def bind_rows_from(node: exp.Expr, binder: Expressions, input: Relation) -> tuple[Relation, Scope]:
    """Binds ROWS FROM (…), which returns the rows of several functions in step. Raises 0A000."""
    functions, ordinality = node.args["rows_from"], bool(node.args.get("ordinality"))
    if len(functions) == 1:
        return bind_function(exp.Table(this=functions[0], alias=node.args.get("alias"), ordinality=ordinality), binder, input)
    calls = []
    for call in functions:
        at = position(call)
        if not isinstance(call, exp.Anonymous) or any(r.kind != "set" for r in catalogue.calls(str(call.this))):
            raise FeatureNotSupported("ROWS FROM of a function that gives no set is not supported", position=at)
        calls.append(_call(binder, call, call.expressions))
        if len(calls[-1].function.outputs) > 1:
            raise FeatureNotSupported(f"{call.this} of several columns in ROWS FROM is not supported", position=at)
    plan = in_step(input, calls, ordinality=ordinality)
    columns = plan.outputs + ((Field("ordinality", INT8, False),) if plan.ordinality else ())
    shown, names = _alias(node, "")
    return plan, scopes.of(shown, columns, tuple(n.name for n in names), "")


def _call(binder: Expressions, node: exp.Anonymous, nodes: list[exp.Expr]) -> Call:
    at = position(node)
    operands = [binder.bind(n) for n in nodes]
    row = function(str(node.this), tuple(s.type for s in operands), at)
    row, casts, type = specialized(row, arguments(row, operands, binder.parameters))
    return Call(row, casts, type, at)


def _routine(node: exp.Expr, call: exp.Anonymous, binder: Expressions, items: tuple[Function, ...]) -> tuple[Relation, Scope]:
    """Binds a user-defined function in FROM. Raises 0A000, 42P10."""
    at = position(call)
    if node.args.get("ordinality"):
        raise FeatureNotSupported("WITH ORDINALITY of an SQL function is not supported", position=at)
    shown, names_of_alias = _alias(node, str(call.this))
    check_definitions("", names_of_alias, at, is_redundant=True)
    plan, columns, unnamed = sql_functions.bind_rows(binder, call, items)
    names = tuple(n.name for n in names_of_alias) or ((shown,) if unnamed else ())
    scope = _scope(shown, columns, names, str(call.this))
    (table,) = scope.tables
    return plan, replace(scope, tables=(replace(table, value=unnamed),))
