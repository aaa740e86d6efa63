"""Arguments of built-in functions that are named, or that VARIADIC takes from an array.

Source: PostgreSQL 15, src/backend/parser/parse_func.c.
"""

from __future__ import annotations

from contextlib import suppress

from sqlglot import exp

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameterValue, SyntaxError_, UndefinedFunction
from tailgate.lake.ranges import RANGE_OF
from tailgate.lake.types import INT4, JSON, JSONB, TEXT, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.types.coercion import bare_type, coerce, elements_as_text
from tailgate.sql.binder.types.dimensions import elements_of
from tailgate.sql.binder.types.json_arrays import json_elements
from tailgate.sql.binder.types.overloads import NO_MATCH, function
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error, strict
from tailgate.sql.functions.ranges import OF_ARRAY
from tailgate.sql.grammar.names import position
from tailgate.sql.plan import Call, Literal, Scalar

NAMES = {
    "make_interval": ("years", "months", "weeks", "days", "hours", "mins", "secs"),
    "make_date": ("year", "month", "day"),
    "make_time": ("hour", "min", "sec"),
    "make_timestamp": ("year", "month", "mday", "hour", "min", "sec"),
    "make_timestamptz": ("year", "month", "mday", "hour", "min", "sec", "timezone"),
    "jsonb_set": ("jsonb_in", "path", "replacement", "create_if_missing"),
    "jsonb_set_lax": ("jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"),
    "jsonb_insert": ("jsonb_in", "path", "replacement", "insert_after"),
    "parse_ident": ("str", "strict"),
    **{f"jsonb_path_{name}": ("target", "path", "vars", "silent") for name in ("exists", "match", "query", "query_array", "query_first")},
}
# the values of omitted arguments before the last one that is given
OMITTED: dict[str, exp.Expr] = {
    **dict.fromkeys(NAMES["make_interval"], exp.Literal.number(0)),
    "vars": exp.Literal.string("{}"),
}
ARRAYS = {"json_build_array": JSON, "jsonb_build_array": JSONB}
OBJECTS = {"json_build_object": JSON, "jsonb_build_object": JSONB}
BUILDERS = ARRAYS | OBJECTS
PATHS = {f"{type}_extract_path{suffix}": sign for type in ("json", "jsonb") for suffix, sign in (("", "#>"), ("_text", "#>>"))}
TEXTS = {"concat": 0, "concat_ws": 1, "format": 1}  # functions of texts, with the number of arguments before the array
JOIN = next(row for row in catalogue.calls("array_to_string") if len(row.arguments) == 2)
TEXT_OF_JSON = ("bool", "timestamp", "timestamptz")  # types whose values have another text as a key of an object
NO_KEYS = ("json", "jsonb", "record")


def _every_other(type: str, first: int) -> Function:
    """Returns the function of every other element of an array, from the first (0) or the second (1) one. Raises 22023 for an odd number."""
    error = "argument list must have even number of elements"
    every = f"filter({{0}}, (tg_x, tg_i) -> tg_i % 2 = {first})"
    spark = f"(CASE WHEN size({{0}}) % 2 = 1 THEN {spark_error('22023', error)} ELSE {every} END)"
    every = f"list_filter({{0}}, lambda tg_x, tg_i: tg_i % 2 = {1 - first})"
    duckdb = f"(CASE WHEN len({{0}}) % 2 = 1 THEN {duckdb_error('22023', error)} ELSE {every} END)"
    return Function("every_other", (type,), type, spark, duckdb)


def _counting(name: str, test: str) -> Function:
    """Returns the function that counts the elements of an array for which a test holds."""
    spark = strict(f"size(filter({{0}}, tg_x -> tg_x {test}))", 1)
    duckdb = strict(f"CAST(len(list_filter({{0}}, lambda tg_x: tg_x {test})) AS INTEGER)", 1)
    return Function(name, ("anyarray",), "int4", spark, duckdb)


KEYS = _every_other("text[]", 0)
VALUES = {type: _every_other(f"{type}[]", 1) for type in ("json", "jsonb")}
COUNTS = {"num_nulls": _counting("num_nulls", "IS NULL"), "num_nonnulls": _counting("num_nonnulls", "IS NOT NULL")}
SCALAR_TEXTS = Function(
    "texts",
    ("json[]",),
    "text[]",
    "transform({0}, tg_x -> tg_json_path_text(tg_x, CAST(array() AS ARRAY<STRING>)))",
    "list_transform({0}, lambda tg_x: tg_json_path_text(tg_x, CAST([] AS VARCHAR[])))",
)
FORMAT = Function(
    "format",
    ("text", "text[]"),
    "text",
    "tg_format({0}, coalesce({1}, CAST(array() AS ARRAY<STRING>)))",
    "tg_format({0}, coalesce({1}, CAST([] AS VARCHAR[])))",
    strict=False,
)


def in_order(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> list[exp.Expr]:
    """Puts named arguments into their order, with the values of omitted ones between them. Raises 42601, 42883."""
    if not any(isinstance(n, exp.Kwarg) for n in nodes):
        return nodes
    names = NAMES.get(name, ())
    by_name: dict[str, exp.Expr] = {}
    for i, node in enumerate(nodes):
        if isinstance(node, exp.Kwarg) and any(isinstance(n, exp.Kwarg) and n.this.name == node.this.name for n in nodes[:i]):
            raise SyntaxError_(f'argument name "{node.this.name}" used more than once', position=position(node))
        if not isinstance(node, exp.Kwarg) and any(isinstance(n, exp.Kwarg) for n in nodes[:i]):
            raise SyntaxError_("positional argument cannot follow named argument", position=position(node))
        key = node.this.name if isinstance(node, exp.Kwarg) else names[i] if i < len(names) else ""
        if key not in names or key in by_name:
            raise _undefined(binder, name, nodes, at)
        by_name[key] = node.args["expression"] if isinstance(node, exp.Kwarg) else node
    last = max(names.index(k) for k in by_name)
    if any(n not in by_name and n not in OMITTED for n in names[: last + 1]):
        raise _undefined(binder, name, nodes, at)
    return [by_name[n] if n in by_name else OMITTED[n].copy() for n in names[: last + 1]]


def _undefined(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> UndefinedFunction:
    """Returns the error for a call with such arguments. Raises the one for a function that does not exist at all."""
    values = [binder.bind(n.args["expression"] if isinstance(n, exp.Kwarg) else n) for n in nodes]
    if not catalogue.calls(name):
        with suppress(UndefinedFunction):  # without the names; functions that only PostgreSQL has are refused
            function(name, tuple(v.type for v in values), at)
    labels = (f"{n.this.name} => " if isinstance(n, exp.Kwarg) else "" for n in nodes)
    types = ", ".join(label + str(bare_type(v.type)) for label, v in zip(labels, values, strict=True))
    return UndefinedFunction(f"function {name}({types}) does not exist", hint=NO_MATCH, position=at)


def bind_variadic(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds a call whose last argument is VARIADIC and an array. Raises 42804, 42883, 0A000."""
    first = [binder.bind(n) for n in nodes[:-1]]
    argument = binder.bind(nodes[-1].this)
    array = elements_of(argument)
    if name in PATHS and len(first) == 1 and (path := coerce(array, TEXT.array(), binder.parameters)) is not None:
        return binder.operate(PATHS[name], [_json(binder, first[0], name, at), path], at)
    if not any(row.variadic for row in catalogue.calls(name)) and name not in BUILDERS:
        function(name, (*(s.type for s in first), array.type), at)
    elif not array.type.is_array:
        raise DatatypeMismatch("VARIADIC argument must be an array", position=position(nodes[-1].this))
    if name in RANGE_OF and not first and not argument.type.multidimensional:
        ranges = coerce(array, Type(RANGE_OF[name], is_array=True), binder.parameters)
        if ranges is None:
            raise _undefined(binder, name, [nodes[-1].this], at)
        return Call(OF_ARRAY[name], (ranges,), Type(name), at)
    if name in (*BUILDERS, *COUNTS) and first:
        raise _undefined(binder, name, [*nodes[:-1], nodes[-1].this], at)
    if name in COUNTS:
        return Call(COUNTS[name], (array,), INT4, at)
    if name in ARRAYS:
        type = ARRAYS[name]
        return Call(catalogue.calls(name)[0], (json_elements(array, type, binder.parameters, at),), type, at)
    if name in OBJECTS:
        return _object(binder, name, array, at)
    if name in TEXTS:
        if len(first) != TEXTS[name]:
            raise _undefined(binder, name, [*nodes[:-1], nodes[-1].this], at)
        text = coerce(first[0], TEXT, binder.parameters) if first else Literal("", TEXT)
        elements = elements_as_text(array, at)
        if text is not None and elements is not None:
            return Call(FORMAT, (text, elements), TEXT, at) if name == "format" else Call(JOIN, (elements, text), TEXT, at)
    raise FeatureNotSupported(f"VARIADIC arguments of {name} are not supported", position=position(nodes[-1]))


def _object(binder: ExpressionBinder, name: str, array: Scalar, at: int | None) -> Scalar:
    """Returns json_build_object or jsonb_build_object of an array of keys and values in turn. Raises 22023."""
    if array.type.name in NO_KEYS:
        raise InvalidParameterValue("key value must be scalar, not array, composite, or json")
    type, texts = OBJECTS[name], None
    if array.type.name not in TEXT_OF_JSON:
        texts = elements_as_text(array, at)
    if texts is None:
        texts = Call(SCALAR_TEXTS, (json_elements(array, JSON, binder.parameters, at),), TEXT.array())
    values = Call(VALUES[type.name], (json_elements(array, type, binder.parameters, at),), type.array())
    return Call(catalogue.calls(name)[0], (Call(KEYS, (texts,), TEXT.array()), values), type, at)


def _json(binder: ExpressionBinder, scalar: Scalar, name: str, at: int | None) -> Scalar:
    """Returns the first argument of a function of paths as json or jsonb. Raises 42883."""
    value = coerce(scalar, Type(name.partition("_")[0]), binder.parameters)
    if value is None:
        function(name, (scalar.type, TEXT), at)
        raise AssertionError(scalar)
    return value
