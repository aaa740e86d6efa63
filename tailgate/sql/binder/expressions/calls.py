"""Calls: functions, aggregates, casts in the form of functions, COALESCE, NULLIF, GREATEST, LEAST.

Source: PostgreSQL 15, src/backend/parser/parse_func.c, parse_agg.c.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import SCHEMA
from tailgate.lake.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    GroupingError,
    InvalidParameterValue,
    TailgateError,
    UndefinedFunction,
    WrongObjectType,
)  # fmt: skip
from tailgate.lake.types import BOOL, FACTS, FLOAT8, JSON, JSONB, NUMERIC, TEXT, UNKNOWN, Type
from tailgate.sql.binder import enums
from tailgate.sql.binder.argument_lists import BUILDERS, bind_variadic, in_order
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.domains import domain_type, in_domain
from tailgate.sql.binder.expressions import sql_functions, subqueries
from tailgate.sql.binder.expressions.aggregates import as_json, bind_aggregate, is_aggregate, json_key, json_object, printed
from tailgate.sql.binder.expressions.window_functions import is_window
from tailgate.sql.binder.grouping import aggregate, placeholder, windowed
from tailgate.sql.binder.grouping_sets import grouping_call
from tailgate.sql.binder.json.records import POPULATE, bind_populated
from tailgate.sql.binder.lambdas import NAMES as LAMBDAS
from tailgate.sql.binder.lambdas import bind_lambda
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.sequence_calls import bind_sequence_call
from tailgate.sql.binder.types.coercion import bare_type, cast, coerce, elements_as_text
from tailgate.sql.binder.types.overloads import NO_MATCH, arguments, function, operator
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.casts import OUTPUT
from tailgate.sql.functions.comparison import INCOMPARABLE
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.text import TYPE_NAME
from tailgate.sql.grammar.extensions import EXTENSIONS
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.type_resolution import WITHOUT_NAME
from tailgate.sql.numeric_types import is_ad_hoc
from tailgate.sql.plan import And, Call, Case, Coalesce, GreatestLeast, InList, IsNull, Literal, Not, Or, Parameter, Scalar
from tailgate.sql.plan.rewriting import parts
from tailgate.sql.plan.rows import ARRAY_LINES, is_row, of_row, unless_null
from tailgate.sql.plan.session_calls import SEQUENCE_FUNCTIONS
from tailgate.sql.plan.sort_keys import has_equal_forms
from tailgate.sql.plan.subqueries import subquery
from tailgate.values.times.units import TRUNCATABLE, UNITS_BY_SPELLING

CONVERSIONS = {"to_json": JSON, "to_jsonb": JSONB}
SCHEMAS = ("pg_catalog", "public")  # of built-in functions


def _unit_error(sqlstate: str, refused: str) -> Function:
    """Returns a function of a unit and the name of a type that raises an error."""
    return Function(
        "no_part",
        ("text", "text"),
        "float8",
        f"CAST(raise_error(concat('\\u0001{sqlstate}unit \"', {{0}}, '\" not {refused} for type ', {{1}})) AS DOUBLE)",
        f"CAST(error('[{sqlstate}] unit \"' || {{0}} || '\" not {refused} for type ' || {{1}}) AS DOUBLE)",
    )


OF_EXTENSIONS = {(SCHEMA, name) for extension in EXTENSIONS.values() for name in extension.functions}  # as a dump names them
UNKNOWN_UNIT, UNSUPPORTED_UNIT = _unit_error("22023", "recognized"), _unit_error("0A000", "supported")


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> Scalar:
    """Binds a call without OVER. Raises 42883, 42725, 42809, 42803, 0A000 and others."""
    name, nodes, at = str(node.this), list(node.expressions), position(node)
    schema = node.meta.get("schema")
    if name == "array" and nodes and isinstance(nodes[0], exp.Subquery):
        return subqueries.bind_array(binder, nodes[0], at)
    if items := sql_functions.named_functions(binder, node):
        return sql_functions.bind_routine(binder, node, items)
    if name in SEQUENCE_FUNCTIONS and schema in (None, "pg_catalog"):
        return bind_sequence_call(binder, name, nodes, at)
    if schema is not None and schema not in SCHEMAS and (schema, name) not in OF_EXTENSIONS:
        if not binder.level.names.types_only:
            binder.level.names.catalog.schema(schema, at)
        raise UndefinedFunction(f"function {schema}.{name} does not exist", position=at)
    if name in ("coalesce", "greatest", "least"):
        return _coalesce(binder, name, nodes)
    if name == "nullif" and len(nodes) == 2:
        return _nullif(binder, nodes, at)
    if name in ("+", "~", "@", "|/", "||/", "!!") and len(nodes) == 1:
        return binder.prefix(name, nodes[0], at)
    if nodes and isinstance(nodes[-1], exp.Variadic):
        return bind_variadic(binder, name, nodes, at)
    nodes = in_order(binder, name, nodes, at)
    if name in catalogue.UNITS and _has_unit(name, nodes):
        return _with_unit(binder, name, nodes, at)
    if name in BUILDERS or name in LAMBDAS or name in POPULATE:
        return (_built if name in BUILDERS else bind_lambda if name in LAMBDAS else bind_populated)(binder, name, nodes, at)
    rows = catalogue.calls(name)
    if is_aggregate(name) or (nodes and isinstance(nodes[-1], (exp.Distinct, exp.Order))):
        return bind_aggregate(binder, node)
    if name == "grouping":
        if not binder.aggregates:
            raise GroupingError(f"grouping operations are not allowed in {binder.clause}", position=at)
        return placeholder(grouping_call(tuple(binder.typed(n) for n in nodes), at))
    if is_window(name):
        raise WrongObjectType(f"window function {name} requires an OVER clause", position=at)
    if any(isinstance(n, exp.Star) for n in nodes):
        function(name, (), at)
        raise WrongObjectType(f"{name}(*) specified, but {name} is not an aggregate function", position=at)
    operands = [binder.bind(n) for n in nodes]
    if name in enums.FUNCTIONS:
        return enums.bind_enum_function(binder, name, operands, at)
    if len(operands) == 1 and (not rows or (isinstance(operands[0], Literal) and operands[0].type == UNKNOWN)):
        # A type's name in the form of a function is a cast, if that cast exists. A composite type is none.
        type_name = Name(name, schema)
        if (type := _type_of(name) or enums.user_type(binder, type_name, at)) is not None and not is_row(type):
            return cast(operands[0], type, binder.parameters, at)
        if (target := domain_type(binder, type_name, at)) is not None:
            return in_domain(binder, cast(operands[0], target[0], binder.parameters, at), target[1], at)
    operands = _printed(binder, name, operands, nodes)
    if len(operands) == 1 and (name in CONVERSIONS or (name == "array_to_json" and operands[0].type.is_array)):
        return as_json(binder, operands[0], CONVERSIONS.get(name, JSON), leftmost(nodes[0]))
    if name == "array_to_json" and len(operands) == 2 and operands[0].type.is_array:
        return _array_to_json(binder, operands, nodes, at)
    if name == "row_to_json" and 1 <= len(operands) <= 2 and is_row(operands[0].type):
        return _row_to_json(binder, operands, nodes, at)
    row = function(name, tuple(s.type for s in operands), at)
    row = TYPE_NAME if name == TYPE_NAME.name and not is_ad_hoc() else row
    _check_row(binder, row, operands, at)
    return binder.call(row, operands, at)


def _printed(binder: ExpressionBinder, name: str, operands: list[Scalar], nodes: list[exp.Expr]) -> list[Scalar]:
    """Returns the arguments, as text where a function takes any type and prints it."""
    if name in ("concat", "concat_ws", "format"):
        first = 0 if name == "concat" else 1  # the first argument of the others is a text, the rest has any type
        operands[first:] = [_as_text(binder, g, n) for g, n in zip(operands[first:], nodes[first:], strict=True)]
    if name in ("quote_literal", "quote_nullable") and len(operands) == 1 and operands[0].type != UNKNOWN:
        operands = [cast(operands[0], TEXT, binder.parameters, position(nodes[0]))]
    if name == "array_to_string" and operands and operands[0].type.is_array and operands[0].type.name != "text":
        operands[0] = elements_as_text(operands[0], position(nodes[0])) or operands[0]
    return operands


def _as_text(binder: ExpressionBinder, scalar: Scalar, node: exp.Expr) -> Scalar:
    """Returns an argument of concat as text, as its type's output function prints it.

    A parameter gets no type from its use here. If nothing else gives it one, the result is 42P18.
    """
    if isinstance(scalar, Parameter) and scalar.type == UNKNOWN:
        return Call(OUTPUT["bpchar"], (scalar,), TEXT)
    return printed(binder, scalar, node)


EXPANDING = ("SELECT", "GROUP BY", "ORDER BY")  # clauses in which set-returning functions are allowed


def _built(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds json_build_array, json_build_object with alternating keys and values, and those of jsonb."""
    row, type = catalogue.calls(name)[0], BUILDERS[name]
    operands = [binder.bind(n) for n in nodes]

    def listed(scalars: list[Scalar], type: Type) -> Scalar:
        if not scalars:
            return Literal((), type.array())
        return Call(catalogue.calls("ARRAY")[0], tuple(scalars), type.array())

    if name.endswith("_array"):
        return Call(row, (listed([as_json(binder, g, type, at) for g in operands], type),), type, at)
    if len(operands) % 2:
        hint = f"The arguments of {name}() must consist of alternating keys and values."
        raise InvalidParameterValue("argument list must have even number of elements", hint=hint)
    if any(key.type.is_array or key.type.fields or key.type in (JSON, JSONB) for key in operands[::2]):
        raise InvalidParameterValue("key value must be scalar, not array, composite, or json")
    keys = [_as_text(binder, json_key(binder, g, n), n) for g, n in zip(operands[::2], nodes[::2], strict=True)]
    values = [as_json(binder, g, type, at) for g in operands[1::2]]
    return Call(row, (listed(keys, TEXT), listed(values, type)), type, at)


def _row_to_json(binder: ExpressionBinder, operands: list[Scalar], nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds row_to_json(row) and row_to_json(row, pretty). Raises 42883."""
    pretty = _pretty(binder, "row_to_json", operands, at) if len(operands) > 1 else Literal(False, BOOL)
    value = of_row(operands[0], lambda row: unless_null(row, json_object(binder, row, JSON, leftmost(nodes[0]), pretty)))
    return (
        value if isinstance(pretty, Literal) and pretty.value is not None else Case(((IsNull(pretty), Literal(None, JSON)),), value, JSON)
    )


def _array_to_json(binder: ExpressionBinder, operands: list[Scalar], nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds array_to_json(array, pretty). Raises 42883."""
    pretty = _pretty(binder, "array_to_json", operands, at)
    json = as_json(binder, operands[0], JSON, leftmost(nodes[0]))
    return Case(((pretty, Call(ARRAY_LINES, (json,), JSON)), (IsNull(pretty), Literal(None, JSON))), json, JSON)


def _pretty(binder: ExpressionBinder, name: str, operands: list[Scalar], at: int | None) -> Scalar:
    """Returns the second argument of array_to_json or row_to_json as a boolean. Raises 42883."""
    pretty = coerce(operands[1], BOOL, binder.parameters)
    if pretty is None:
        function(name, tuple(s.type for s in operands), at)  # raises the error
        raise AssertionError(operands)
    return pretty


def _check_row(binder: ExpressionBinder, row: Function, operands: list[Scalar], at: int | None) -> None:
    """Raises 0A000 for a set-returning function in other clauses, a volatile one in a view, and some arguments of try."""
    if row.kind == "set" and binder.clause not in EXPANDING:
        hint = f"Put it into FROM, as in FROM t, {row.name}(t.x)."
        raise FeatureNotSupported(f"set-returning functions are not allowed in {binder.clause}", hint=hint, position=at)
    if row.name == "try":
        _check_try(operands[0], at)
    if row.volatility == "volatile" and binder.view:
        raise FeatureNotSupported(
            f"{row.name} in a view is not supported", hint="The rows of a view change only with the rows that it reads.", position=at
        )


def _check_try(value: Scalar, at: int | None) -> None:
    """Raises 0A000 for a volatile function or a subquery in the value of try, outside of aggregates and window functions."""
    if aggregate(value) is not None or windowed(value) is not None:
        return
    if subquery(value) is not None:
        raise FeatureNotSupported("a subquery in try is not supported", hint="Write try inside the subquery.", position=at)
    if isinstance(value, Call) and value.function.volatility == "volatile":
        raise FeatureNotSupported(f"volatile function {value.function.name} in try is not supported", position=at)
    for part in parts(value):
        _check_try(part, at)


def _has_unit(name: str, nodes: list[exp.Expr]) -> bool:
    """Returns whether the unit selects the catalogue row. In date_trunc, only a literal does."""
    literal = bool(nodes) and isinstance(nodes[0], exp.Literal) and nodes[0].is_string
    return not (name == "date_trunc" and (len(nodes) != 2 or not literal))


def _with_unit(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds a call whose unit selects the catalogue row.

    Examples are date_trunc('hour', x) and extract(hour FROM x).
    """
    operands = [binder.bind(n) for n in nodes]
    shown = "pg_catalog.extract" if name == "extract" else name
    if len(operands) != 2:
        types = ", ".join(str(bare_type(g.type)) for g in operands)
        raise UndefinedFunction(f"function {name}({types}) does not exist", hint=NO_MATCH, position=at)
    unit, value = operands
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        return _computed_part(binder, unit, value, at)
    if value.type == UNKNOWN:
        raise _ambiguous(name, at)
    is_time = value.type.facts.category in "DT" and not (name == "date_trunc" and value.type.name == "timetz")
    if not is_time or value.type.is_array:
        raise UndefinedFunction(f"function {shown}(unknown, {bare_type(value.type)}) does not exist", hint=NO_MATCH, position=at)
    word = unit.value.lower()
    canonical = UNITS_BY_SPELLING.get(word, word)
    if name == "date_trunc" and value.type.name == "date":
        value = cast(value, Type("timestamptz"), binder.parameters, at)
    if name == "date_trunc" and value.type.name == "time":
        value = cast(value, Type("interval"), binder.parameters, at)
    row = _part(name, canonical, value.type)
    if row is None and name == "date_part" and value.type.name == "date":
        value = cast(value, Type("timestamp"), binder.parameters, at)
        row = _part(name, canonical, value.type)
    if row is not None:
        return binder.call(row, [value], at)
    message = f'unit "{word}" not %s for type {bare_type(value.type)}'
    is_unit = canonical in (TRUNCATABLE if name == "date_trunc" else UNITS_BY_SPELLING.values())
    raise FeatureNotSupported(message % "supported") if is_unit else InvalidParameterValue(message % "recognized")


def _part(name: str, unit: str, type: Type) -> Function | None:
    """Returns the row of a function for a unit and the type of the value, or None if there is none."""
    return next((row for row in catalogue.calls(f"{name}:{unit}") if row.arguments == (type.name,)), None)


def _computed_part(binder: ExpressionBinder, unit: Scalar, value: Scalar, at: int | None) -> Scalar:
    """Binds date_part() with a computed unit: CASE with a branch for each unit. Raises 42883, 42725."""
    if value.type == UNKNOWN:
        raise _ambiguous("date_part", at, str(bare_type(unit.type)))
    word = coerce(unit, TEXT, binder.parameters)
    if word is None or value.type.facts.category not in "DT" or value.type.is_array:
        types = f"{bare_type(unit.type)}, {bare_type(value.type)}"
        raise UndefinedFunction(f"function date_part({types}) does not exist", hint=NO_MATCH, position=at)
    if value.type.name == "date":
        value = cast(value, Type("timestamp"), binder.parameters, at)
    word = binder.call(function("lower", (TEXT,), at), [word], at)
    refusal = word, Literal(str(bare_type(value.type)), TEXT)
    branches: list[tuple[Scalar, Scalar]] = [(Or((IsNull(word), IsNull(value))), Literal(None, FLOAT8))]
    for canonical in dict.fromkeys(UNITS_BY_SPELLING.values()):
        spellings = tuple(Literal(spelling, TEXT) for spelling, of in UNITS_BY_SPELLING.items() if of == canonical)
        row = _part("date_part", canonical, value.type)
        part = Call(UNSUPPORTED_UNIT, refusal, FLOAT8, at) if row is None else binder.call(row, [value], at)
        branches.append((InList(word, spellings), part))
    return Case(tuple(branches), Call(UNKNOWN_UNIT, refusal, FLOAT8, at), FLOAT8)


def _ambiguous(name: str, at: int | None, unit: str = "unknown") -> TailgateError:
    return AmbiguousFunction(
        f"function {'pg_catalog.' * (name == 'extract')}{name}({unit}, unknown) is not unique",
        hint="Could not choose a best candidate function. You might need to add explicit type casts.",
        position=at,
    )


def _coalesce(binder: ExpressionBinder, name: str, nodes: list[exp.Expr]) -> Scalar:
    """Binds COALESCE, GREATEST or LEAST, whose arguments have one common type. Raises 42804."""
    casts, type = binder.unify(nodes, [binder.bind(n) for n in nodes], name.upper())
    if name == "coalesce":
        return casts[0] if len(casts) == 1 else Coalesce(casts, type)
    if type.name in INCOMPARABLE:
        raise UndefinedFunction(f"could not identify a comparison function for type {bare_type(type)}")
    if has_equal_forms(type) or type.is_array or is_row(type):
        return _extreme(binder, ">=" if name == "greatest" else "<=", casts, type)
    return GreatestLeast("greatest" if name == "greatest" else "least", casts, type)


def _extreme(binder: ExpressionBinder, sign: str, values: tuple[Scalar, ...], type: Type) -> Scalar:
    """Returns the first value that compares with `sign` to all others, by the type's own operator.

    NULLs are ignored.
    """

    def chosen(value: Scalar) -> Scalar:
        others = (binder.operate(sign, [value, other], None) for other in values if other is not value)
        return And((Not(IsNull(value)), *(Coalesce((test, Literal(True, BOOL)), BOOL) for test in others)))

    if len(values) == 1:
        return values[0]
    return Case(tuple((chosen(value), value) for value in values), Literal(None, type), type)


# types that PostgreSQL's operators `=` compare with each other without a cast
FAMILIES: tuple[set[str], ...] = ({"int2", "int4", "int8"}, {"float4", "float8"}, {"date", "timestamp", "timestamptz"}, {"name", "text"})


def _nullif(binder: ExpressionBinder, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds NULLIF. Its type is the type of the left argument of PostgreSQL's operator `=` that compares the values."""
    operands = [binder.bind(n) for n in nodes]
    value = operands[0]
    if not any(is_row(s.type) for s in operands):
        operands = list(arguments(operator("=", tuple(s.type for s in operands), at), operands, binder.parameters))
        if is_ad_hoc() and operands[0].type.name == "numeric":
            value = cast(value, NUMERIC, binder.parameters, at)  # the comparison is of one scale, the value has its own
        elif not any({value.type.name, operands[0].type.name} <= family for family in FAMILIES):
            value = operands[0]
    return Case(((binder.operate("=", operands, at), Literal(None, value.type)),), value, value.type)


def _type_of(name: str) -> Type | None:
    return Type(name) if name in FACTS and name not in WITHOUT_NAME else None
