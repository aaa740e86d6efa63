"""json_to_record, json_populate_record, their sets and those of jsonb in FROM.

The columns are those of a column definition list or of a relation. The value of a column is read from the member of the
JSON object with the name of the column.

Source: PostgreSQL 15, src/backend/utils/adt/jsonfuncs.c (populate_record).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DatatypeMismatch, DuplicateColumn, FeatureNotSupported, SyntaxError_, UndefinedFunction
from tailgate.lake.types import JSON, JSONB, TEXT, Field, Type
from tailgate.sql.authorization import TYPE, Demand
from tailgate.sql.binder.enums import cast_type
from tailgate.sql.binder.expressions.expressions import Expressions
from tailgate.sql.binder.types.coercion import cast, coerce
from tailgate.sql.binder.types.overloads import NO_MATCH
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Call, Case, Column, Generate, Literal, Project, Relation, Scalar

Error = Callable[[str, str], str]  # returns SQL that raises an error, from its SQLSTATE and message
FUNCTIONS = {f"{type.name}_to_record{set}": (type, set == "set") for type in (JSON, JSONB) for set in ("", "set")}
POPULATE = {name.replace("to", "populate", 1): facts for name, facts in FUNCTIONS.items()}
TEXTS = ("varchar", "bpchar")


def check_definitions(name: str, definitions: list[exp.Expr], at: int | None, *, is_redundant: bool = False) -> None:
    """Raises 42601 for a column definition list of a function that needs none, or without one of a function that does."""
    column = next((d for d in definitions if isinstance(d, exp.ColumnDef)), None)
    if column is None and name in FUNCTIONS:
        raise SyntaxError_('a column definition list is required for functions returning "record"', position=at)
    if column is not None and name not in FUNCTIONS:
        about = "redundant for a function with OUT parameters" if is_redundant else 'only allowed for functions returning "record"'
        raise SyntaxError_(f"a column definition list is {about}", position=position(column.this))


def bind_record_function(call: exp.Anonymous, definitions: list[exp.Expr], binder: Expressions, input: Relation) -> Relation:
    """Binds a function with a column definition list over the rows of `input`, which has no columns.

    Raises 42601, 42701, 42883, 0A000.
    """
    columns = tuple(_column(d, binder) for d in definitions)
    repeated = next((c.name for i, c in enumerate(columns) if any(c.name == other.name for other in columns[:i])), None)
    if repeated is not None:
        raise DuplicateColumn(f'column name "{repeated}" specified more than once')
    return _rows(call, FUNCTIONS[str(call.this)], call.expressions, columns, binder, input)


def bind_populating(call: exp.Anonymous, binder: Expressions, input: Relation) -> Relation:
    """Binds a function whose first argument, NULL::relation, gives the columns. Raises 42804, 42883, 42P01, 0A000."""
    name, at = str(call.this), position(call)
    base = call.expressions[0] if len(call.expressions) == 2 else None
    if not isinstance(base, exp.Cast) or not isinstance(base.this, exp.Null) or binder.view:
        hint = f"Write {name}(NULL::relation, …) in FROM, in a query or a statement that writes."
        raise FeatureNotSupported(f"this call of {name} is not supported", hint=hint, position=at)
    names, kind = binder.level.names, base.args["to"]
    if kind.args.get("values"):
        raise DatatypeMismatch(f"first argument of {name} must be a row type")
    item = names.catalog.relation(Name(str(kind.args["kind"]), kind.meta.get("schema"), position(kind)))
    names.use(item, position(kind))
    names.demand(Demand(TYPE, item.id, names.readers))
    columns = tuple(c for c in item.columns if not c.is_dropped)
    for column in columns:
        if column.domain is not None or _is_unchecked(column.type):
            shown = f'the type of column "{column.name}" of relation "{item.name}"'
            raise FeatureNotSupported(f"{name} is not supported for {shown}", position=at)
    return _rows(call, POPULATE[name], call.expressions[1:], columns, binder, input)


def _rows(
    call: exp.Anonymous, facts: tuple[Type, bool], nodes: list[exp.Expr], columns: tuple[Field, ...], binder: Expressions, input: Relation
) -> Relation:
    """Returns the rows of a function with one argument of JSON. Raises 42883."""
    name, at, (type, is_set) = str(call.this), position(call), facts
    operands = [binder.bind(n) for n in nodes]
    argument = coerce(operands[0], type, binder.parameters) if len(operands) == 1 else None
    if argument is None:
        types = ", ".join(str(o.type) for o in operands)
        raise UndefinedFunction(f"function {name}({types}) does not exist", hint=NO_MATCH, position=at)
    objects = Generate(input, _objects(name, type, is_set=is_set), (argument,), (Field("value", type),), position=at)
    value = Call(_object(name, type, is_set=is_set), (Column(0, type),), type, at)
    members = tuple(_member(value, c, binder, at) for c in columns)
    return Project(objects, members, tuple(Field(c.name, m.type) for c, m in zip(columns, members, strict=True)))


def _column(definition: exp.Expr, binder: Expressions) -> Field:
    """Returns a column of the list. Raises 0A000 for types whose lengths are not checked."""
    assert isinstance(definition, exp.ColumnDef)
    kind = definition.args["kind"]
    type, domain = cast_type(binder, kind)
    if domain is not None:
        raise FeatureNotSupported("a domain in a column definition list is not supported", hint=f"Use {type}.", position=position(kind))
    if _is_unchecked(type):
        hint = "Use the type without a length, and a cast in the select list."
        raise FeatureNotSupported(f"type {type} in a column definition list is not supported", hint=hint, position=position(kind))
    return Field(definition.this.name, type)


def _is_unchecked(type: Type) -> bool:
    """Returns whether a length of the type is not checked."""
    return bool(type.modifiers) and (type.name in ("bit", "varbit") or (type.name in TEXTS and type.is_array))


def _objects(name: str, type: Type, *, is_set: bool) -> Function:
    """Returns the function whose rows are the objects: the argument, or its elements. It raises 22023."""
    if not is_set:
        return Function(name, (type.name,), type.name, "array({0})", "[{0}]", "set", strict=False)
    what = ("a non-array", "a non-array") if type == JSONB else ("an object", "a scalar")

    def template(error: Error) -> str:
        kind = f"tg_{type.name}_typeof({{0}})"
        of_object, of_scalar = (error("22023", f"cannot call {name} on {w}") for w in what)
        return (
            f"(CASE WHEN {kind} = 'array' THEN tg_{type.name}_elements({{0}}) WHEN {kind} = 'object' THEN {of_object}"
            f" WHEN {{0}} IS NOT NULL THEN {of_scalar} END)"
        )

    return Function(name, (type.name,), type.name, template(spark_error), template(duckdb_error), "set", strict=False)


def _object(name: str, type: Type, *, is_set: bool) -> Function:
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


def _member(value: Scalar, column: Field, binder: Expressions, at: int | None) -> Scalar:
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
