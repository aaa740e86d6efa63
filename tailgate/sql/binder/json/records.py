"""Values of the columns of a relation or of a composite type from the members of a JSON object.

    jsonb_populate_record(base, object)   base gives the columns, and the values of those that have no member

The value of a column is read from the member of the object with the name of the column.

Source: PostgreSQL 15, src/backend/utils/adt/jsonfuncs.c (populate_record).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, UndefinedFunction
from tailgate.lake.types import JSON, JSONB, TEXT, UNKNOWN, Field, Type
from tailgate.sql.authorization import TYPE, Demand
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.types.coercion import bare_type, cast, coerce
from tailgate.sql.binder.types.overloads import NO_MATCH
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Call, Case, IsNull, Literal, Scalar
from tailgate.sql.plan.rows import fields, is_row, row_of

Error = Callable[[str, str], str]  # returns SQL that raises an error, from its SQLSTATE and message
FUNCTIONS = {f"{type.name}_to_record{set}": (type, set == "set") for type in (JSON, JSONB) for set in ("", "set")}
POPULATE = {name.replace("to", "populate", 1): facts for name, facts in FUNCTIONS.items()}
TEXTS = ("varchar", "bpchar")


class Base(NamedTuple):
    """The first argument of a function that populates rows: the columns, and their values, None if it is NULL."""

    type: Type
    values: tuple[Scalar, ...] | None


def base(binder: ExpressionBinder, name: str, node: exp.Expr) -> Base:
    """Binds the first argument. Raises 42804, 0A000."""
    if isinstance(node, exp.Cast) and node.args["to"].args.get("values"):
        raise DatatypeMismatch(f"first argument of {name} must be a row type")
    row = _relation_row(binder, node)
    if row is None:
        value = binder.bind(node)
        if value.type == UNKNOWN:
            raise DatatypeMismatch("could not determine polymorphic type because input has type unknown")
        if not is_row(value.type):
            raise DatatypeMismatch(f"first argument of {name} must be a row type")
        row = Base(value.type, None if isinstance(value, Literal) and value.value is None else fields(value))
    for column in row.type.fields:
        if is_unchecked(column.type):
            raise FeatureNotSupported(f'{name} is not supported for the type of column "{column.name}"', position=position(node))
    return row


def _relation_row(binder: ExpressionBinder, node: exp.Expr) -> Base | None:
    """Returns the row of NULL::relation, or None for other expressions. Raises 0A000."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Null):
        return None
    names, kind = binder.level.names, node.args["to"]
    item = names.catalog.find(Name(str(kind.args["kind"]), kind.meta.get("schema")))
    if item is None or not getattr(item, "columns", ()):
        return None
    names.use(item, position(kind))
    names.demand(Demand(TYPE, item.id, names.readers))
    columns = tuple(c for c in item.columns[: names.widths.get(item.id)] if not c.is_dropped)
    domain = next((c for c in columns if c.domain is not None), None)
    if domain is not None:
        shown = f'the domain of column "{domain.name}" of relation "{item.name}"'
        raise FeatureNotSupported(f"{shown} is not supported here", position=position(node))
    return Base(Type("record", fields=columns), None)


def bind_populated(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds json_populate_record or jsonb_populate_record as a value. Raises 42804, 42883, 0A000."""
    type, is_set = POPULATE[name]
    if is_set or len(nodes) != 2:
        raise FeatureNotSupported(f"this call of {name} is not supported", hint=f"Write {name}(row, {type}) in FROM.", position=at)
    row = base(binder, name, nodes[0])
    json = argument(binder, name, nodes[1:], type, at)
    value = Call(object_function(name, type, is_set=False), (json,), type, at)
    whole = row_of(row.type, members(binder, value, row, at), at)
    return whole if row.values is not None else Case(((IsNull(json), Literal(None, row.type)),), whole, row.type)


def argument(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], type: Type, at: int | None) -> Scalar:
    """Returns the argument of JSON, the only one of these nodes. Raises 42883."""
    operands = [binder.bind(n) for n in nodes]
    json = coerce(operands[0], type, binder.parameters) if len(operands) == 1 else None
    if json is None:
        types = ", ".join(str(bare_type(o.type)) for o in operands)
        raise UndefinedFunction(f"function {name}({types}) does not exist", hint=NO_MATCH, position=at)
    return json


def is_unchecked(type: Type) -> bool:
    """Returns whether a length of the type is not checked."""
    return bool(type.modifiers) and (type.name in ("bit", "varbit") or (type.name in TEXTS and type.is_array))


def object_function(name: str, type: Type, *, is_set: bool) -> Function:
    """Returns a function that returns a JSON object, and raises 22023 for other values."""
    in_set = f"argument of {name} must be an array of objects"
    of_array, of_scalar = (in_set if is_set else f"cannot call populate_composite on {what}" for what in ("an array", "a scalar"))

    def template(error: Error) -> str:
        kind = f"tg_{type.name}_typeof({{0}})"
        return (
            f"(CASE WHEN {{0}} IS NULL OR {kind} = 'object' THEN {{0}} WHEN {kind} = 'array' THEN {error('22023', of_array)}"
            f" ELSE {error('22023', of_scalar)} END)"
        )

    return Function("object", (type.name,), type.name, template(spark_error), template(duckdb_error))


def members(binder: ExpressionBinder, value: Scalar, row: Base, at: int | None) -> tuple[Scalar, ...]:
    """Returns the values of the columns: the members of an object, those of the row that have none."""
    of_object = tuple(_member(value, c, binder, at) for c in row.type.fields)
    if row.values is None:
        return of_object

    def or_own(member: Scalar, own: Scalar, column: Field) -> Scalar:
        has_none = IsNull(binder.operate("->", [value, Literal(column.name, TEXT)], at))
        return Case(((has_none, own),), member, column.type)

    return tuple(map(or_own, of_object, row.values, row.type.fields))


def _member(value: Scalar, column: Field, binder: ExpressionBinder, at: int | None) -> Scalar:
    """Returns the value of a column: the member of an object with its name. A missing member and null are NULL."""
    target, key = column.type, Literal(column.name, TEXT)
    text = binder.operate("->>", [value, key], at)
    if not target.is_array and target not in (JSON, JSONB):
        text = Call(_limited(target), (text,), TEXT) if target.name in TEXTS and target.modifiers else text
        return cast(text, target, binder.parameters, at)
    member = binder.operate("->", [value, key], at)
    row = next(r for r in catalogue.calls(f"{value.type.name}_typeof") if r.arguments == (value.type.name,))
    kind = binder.call(row, [member], at)

    def is_kind(name: str) -> Scalar:
        return binder.operate("=", [kind, Literal(name, TEXT)], at)

    null = (is_kind("null"), Literal(None, target))
    if not target.is_array:
        return Case((null,), cast(member, target, binder.parameters, at), target)
    elements = (is_kind("array"), cast(_elements(member, target), target, binder.parameters, at))
    of_text = (is_kind("string"), cast(text, target, binder.parameters, at))
    return Case((elements, of_text, null), Call(_error(target), (member,), target), target)


def _limited(target: Type) -> Function:
    """Returns a function that raises 22001 for a text that is too long for a type. As in PostgreSQL, more blanks may follow."""
    spark, duckdb = (
        f"(CASE WHEN length({trimmed}) > {target.modifiers[0]} THEN {error('22001', f'value too long for type {target}')} ELSE {{0}} END)"
        for trimmed, error in (("rtrim({0})", spark_error), ("rtrim({0}, ' ')", duckdb_error))
    )
    return Function("limited", ("text",), "text", spark, duckdb)


def _elements(array: Scalar, target: Type) -> Scalar:
    """Returns a JSON array as an array of JSON values, for such a target, or of texts; null is NULL."""
    name = array.type.name
    if target.element not in (JSON, JSONB):
        template = f"tg_{name}_elements_text({{0}})"
        return Call(Function("elements", (name,), "text[]", template, template), (array,), TEXT.array())
    element = f"CASE WHEN tg_{name}_typeof(tg_x) <> 'null' THEN tg_x END"
    spark = f"transform(tg_{name}_elements({{0}}), tg_x -> {element})"
    duckdb = f"list_transform(tg_{name}_elements({{0}}), lambda tg_x: {element})"
    return Call(Function("elements", (name,), f"{name}[]", spark, duckdb), (array,), array.type.array())


def _error(target: Type) -> Function:
    """Returns a function that raises 22P02 for a value that is not NULL, with the type of the column."""
    spark, duckdb = (
        f"CAST(CASE WHEN {{0}} IS NOT NULL THEN {error('22P02', 'expected JSON array')} END AS {{type}})"
        for error in (spark_error, duckdb_error)
    )
    return Function("error", ("any",), target.name, spark, duckdb)
