"""Aggregates.

    name([DISTINCT] arguments [ORDER BY …]) [WITHIN GROUP (ORDER BY …)] [FILTER (WHERE …)]

Source: PostgreSQL 15, src/backend/parser/parse_agg.c, parse_func.c ParseFuncOrColumn().
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, GroupingError, InvalidColumnReference, WrongObjectType
from tailgate.lake.types import BOOL, FLOAT8, JSON, JSONB, TEXT, UNKNOWN, Type
from tailgate.sql.binder import ordered_sets
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.expressions.aggregate_levels import owned
from tailgate.sql.binder.grouping import has_aggregates, has_windows
from tailgate.sql.binder.positions import aggregate_place, leftmost
from tailgate.sql.binder.set_returning import refuse
from tailgate.sql.binder.types.coercion import cast, coerce
from tailgate.sql.binder.types.comparability import check_one_form, require_equality, require_order
from tailgate.sql.binder.types.dimensions import with_dimensions
from tailgate.sql.binder.types.json_arrays import json_elements
from tailgate.sql.binder.types.overloads import arguments, fixed, function, operator, specialized
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.aggregates import RANGE_AGGREGATES, VARIANCES, WITHIN_GROUP
from tailgate.sql.functions.casts import OUTPUT
from tailgate.sql.functions.general import templates as general_templates
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.grammar.names import position
from tailgate.sql.numeric_types import elements_may_be_general, may_be_general
from tailgate.sql.plan import AggregateCall, Call, Case, Literal, Not, Scalar, SortKey
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rows import TO_JSON, fields, is_row, of_row, unless_null
from tailgate.sql.plan.sort_keys import sort_key

JSON_TYPES = {"json_agg": JSON, "jsonb_agg": JSONB, "json_object_agg": JSON, "jsonb_object_agg": JSONB}
FALSE = Literal(False, BOOL)
OF_ARRAY = {"json": "array_to_json", "jsonb": "jsonb_build_array"}  # of an array of JSON values

# aggregates that find equal values in different stored forms
ORDERING = frozenset(("count", "min", "max"))  # in views of earlier versions, too
COMPARING = ORDERING | {"sum", "avg", *VARIANCES}


@dataclass(frozen=True, slots=True)
class Parts:
    """The syntactic parts of a call: its name, arguments, position and clauses."""

    name: str
    nodes: list[exp.Expr]
    at: int | None
    distinct: bool = False
    order: list[exp.Expr] | None = None
    within: list[exp.Expr] | None = None
    where: exp.Expr | None = None


def is_aggregate(name: str) -> bool:
    """Returns whether a built-in aggregate has this name."""
    return any(r.kind == "aggregate" for r in catalogue.calls(name))


def call_parts(node: exp.Expr) -> Parts:
    """Returns the parts of a call, with the clauses after it."""
    where = within = order = None
    if isinstance(node, exp.Filter):
        where, node = node.args["expression"].this, node.this
    if isinstance(node, exp.WithinGroup):
        within, node = list(node.args["expression"].expressions), node.this
    assert isinstance(node, exp.Anonymous)
    nodes, distinct = list(node.expressions), False
    if nodes and isinstance(nodes[-1], exp.Order):
        last = nodes[-1]
        order, nodes = list(last.expressions), [*nodes[:-1], last.this]
    if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct):
        nodes, distinct = list(nodes[0].expressions), True
    return Parts(str(node.this), nodes, position(node), distinct, order, within, where)


def bind_aggregate(binder: ExpressionBinder, node: exp.Expr) -> Scalar:
    """Binds a call of an aggregate with the clauses after it. Raises 42809, 42803, 42P10, 0A000."""
    parts = call_parts(node)
    _check_kind(parts)
    if parts.within is not None and parts.name in ordered_sets.HYPOTHETICAL:
        return binder.bind(ordered_sets.hypothetical(binder, parts.name, parts.nodes, parts.within, parts.where, parts.at))
    if (fractions := ordered_sets.fractions(binder, parts.name, parts.nodes)) is not None:
        return ordered_sets.of_each(fractions, lambda one: _bind_one(binder, replace(parts, nodes=[one])))
    return _bind_one(binder, parts)


def _bind_one(binder: ExpressionBinder, parts: Parts) -> Scalar:
    if parts.within and len(parts.nodes) == 1 and ordered_sets.of_intervals(replace(binder, aggregates=True), parts.name, parts.within):
        argument = binder.bind(parts.nodes[0])
        fraction = coerce(argument, FLOAT8, binder.parameters)
        if fraction is not None and argument.type != UNKNOWN:
            return binder.bind(ordered_sets.interval_percentile(fraction, parts.within[0], parts.where, parts.at))
    return owned(binder, bind_aggregate_call(binder, parts))


def bind_aggregate_call(binder: ExpressionBinder, parts: Parts, *, nested: bool = False) -> AggregateCall:
    """Returns the bound call over the aggregated rows.

    `nested`: the call has OVER and runs over groups, so its arguments can contain aggregates.
    """
    name, at = parts.name, parts.at
    inner = replace(binder, aggregates=True, within_window=binder.within_window or nested)
    star = len(parts.nodes) == 1 and isinstance(parts.nodes[0], exp.Star)
    if not parts.nodes and name == "count":
        raise WrongObjectType("count(*) must be used to call a parameterless aggregate function", position=at)
    nodes = [] if star else list(parts.nodes)
    aggregated = [n.this for n in parts.within or []]
    operands = values = [inner.bind(n) for n in (*nodes, *aggregated)]
    for operand, node in zip(operands if parts.distinct else (), nodes, strict=False):
        require_equality(operand.type, leftmost(node))
    if name in JSON_TYPES:
        operands = _as_json(inner, name, nodes, operands)
    if name == "array_agg" and len(operands) == 1 and operands[0].type.is_array:
        operands = [with_dimensions(operands[0])]
    aggregate = function(name, tuple(s.type for s in operands), at)
    casts = tuple(inner.known(a) for a in arguments(aggregate, operands, inner.parameters))
    if not _takes_general(name, casts, distinct=parts.distinct):
        casts = tuple(map(fixed, casts))
    aggregate, casts, type = specialized(aggregate, casts)
    order = [SortKey(inner.typed(n.this), bool(n.args.get("desc")), bool(n.args.get("nulls_first"))) for n in parts.order or []]
    for scalar, place in zip((*casts, *(k.expression for k in order)), [*nodes, *aggregated, *(parts.order or [])], strict=True):
        if has_windows(scalar):
            raise GroupingError("aggregate function calls cannot contain window function calls", position=leftmost(place))
        if not nested and has_aggregates(scalar):
            raise GroupingError("aggregate function calls cannot be nested", position=aggregate_place(place))
    refuse((*casts, *(k.expression for k in order)), "window function" if nested else "aggregate function")
    for key, node in zip(order, parts.order or [], strict=True):
        require_order(key.expression.type, leftmost(node.this))
    condition = None
    if parts.where is not None:
        condition = replace(binder, clause="FILTER", aggregates=False).boolean(parts.where, "FILTER")
    direct = casts[: len(nodes)]
    if parts.distinct:
        ordered = values if name == "jsonb_agg" else operands  # the order of jsonb is that of its values
        order = _of_arguments(order, parts.order or [], [inner.known(o) for o in ordered], direct)
    if name == "array_agg" and parts.distinct and direct[0].type.general:
        aggregate, order = replace(aggregate, duckdb=general_templates.DISTINCT_ARRAY), order or [SortKey(direct[0], False, False)]
    if parts.within is not None:
        order = [
            SortKey(s, bool(n.args.get("desc")), bool(n.args.get("nulls_first")))
            for s, n in zip(casts[len(nodes) :], parts.within, strict=True)
        ]
    _check(parts, name, direct, order)
    if name in ("max_by", "min_by"):
        direct = (direct[0], sort_key(direct[1]))
    if name == "count" and parts.distinct:
        direct = tuple(map(sort_key, direct))
    if condition is not None:
        direct = tuple(_where(condition, s) for s in direct)
        order = [replace(k, expression=_where(condition, k.expression)) for k in order]
    return AggregateCall(aggregate, direct, type, parts.distinct, condition, tuple(order), at)


def _takes_general(name: str, operands: tuple[Scalar, ...], *, distinct: bool) -> bool:
    """Returns whether an aggregate takes general numerics by the current rules; otherwise they become fixed.

    An aggregate that finds equal values and returns one of them takes no arrays of general numerics.
    """
    if name == "mode" or (name == "array_agg" and distinct):
        return elements_may_be_general() and not any(operand.type.is_array for operand in operands)
    if name == "array_agg":
        return elements_may_be_general()
    return not distinct or name in (COMPARING if may_be_general() else ORDERING)


def _where(condition: Scalar, scalar: Scalar) -> Scalar:
    """Returns an argument of an aggregate with FILTER.

    If it can fail, it is computed only for rows that pass. One with OVER may contain an aggregate.
    """
    guarded = has_aggregates(scalar) or fallible(scalar)
    return Case(((condition, scalar),), Literal(None, scalar.type), scalar.type) if guarded else scalar


def _check_kind(parts: Parts) -> None:
    """Raises 42809 or 0A000 if the clauses of a call do not suit the kind of its function."""
    name, at = parts.name, parts.at
    rows = catalogue.calls(name)
    if parts.within is not None and name in ordered_sets.HYPOTHETICAL:
        if parts.distinct or parts.order:
            raise FeatureNotSupported(f"DISTINCT and ORDER BY inside of {name} are not supported", position=at)
        return
    if rows and not is_aggregate(name):
        words = [w for w, present in (("DISTINCT", parts.distinct), ("WITHIN GROUP", parts.within), ("ORDER BY", parts.order)) if present]
        words += ["FILTER"] if parts.where is not None else []
        if words:
            raise WrongObjectType(f"{words[0]} specified, but {name} is not an aggregate function", position=at)
    if rows and parts.within is not None and name not in WITHIN_GROUP:
        raise WrongObjectType(f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP", position=at)
    if name in WITHIN_GROUP and parts.within is None:
        raise WrongObjectType(f"WITHIN GROUP is required for ordered-set aggregate {name}", position=at)
    if name in WITHIN_GROUP and (parts.distinct or parts.order):
        raise FeatureNotSupported("DISTINCT and ORDER BY inside of an ordered-set aggregate are not supported", position=at)


def _of_arguments(order: list[SortKey], nodes: list[exp.Expr], operands: list[Scalar], casts: tuple[Scalar, ...]) -> list[SortKey]:
    """Returns the keys of ORDER BY of an aggregate with DISTINCT as arguments, which have implicit casts. Raises 42P10."""
    keys = []
    for key, node in zip(order, nodes, strict=True):
        if key.expression not in operands:
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list", position=leftmost(node.this)
            )
        keys.append(replace(key, expression=casts[operands.index(key.expression)]))
    return keys


def _check(parts: Parts, name: str, arguments: tuple[Scalar, ...], order: list[SortKey]) -> None:
    """Raises 0A000 if DISTINCT and ORDER BY do not suit an aggregate and its arguments."""
    at = parts.at
    if name == "mode":
        check_one_form(order[0].expression.type, name, at)
    if not parts.distinct:
        return
    for argument in arguments:
        if name not in (*JSON_TYPES, *ORDERING, *RANGE_AGGREGATES):
            check_one_form(argument.type, "DISTINCT", at)
    if order and name.endswith("object_agg"):
        raise FeatureNotSupported(f"{name} with DISTINCT and ORDER BY is not supported", position=at)


def _as_json(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], operands: list[Scalar]) -> list[Scalar]:
    """Casts values to json or jsonb, and the keys of an object to text."""
    if len(operands) != (2 if name.endswith("object_agg") else 1):
        return operands
    type, value = JSON_TYPES[name], binder.known(operands[-1])
    keys = [printed(binder, json_key(binder, k, n), n) for k, n in zip(operands[:-1], nodes, strict=False)]
    return [*keys, value if value.type == type else as_json(binder, value, type, leftmost(nodes[-1]))]


def as_json(binder: ExpressionBinder, scalar: Scalar, target: Type, at: int | None) -> Scalar:
    """Returns to_json or to_jsonb of a value of any type.

    The elements of an array are converted one by one.
    """
    if scalar.type == UNKNOWN:
        if isinstance(scalar, Literal) and scalar.value is None:
            return Literal(None, target)
        scalar = binder.known(scalar)
    type = scalar.type
    if is_row(type):
        return of_row(scalar, lambda row: unless_null(row, json_object(binder, row, target, at)))
    if type.name == "record":
        hint = "Use json_agg or jsonb_agg in place of array_agg."
        raise FeatureNotSupported(f"{target.name} of arrays of rows is not supported", hint=hint, position=at)
    if type.name == "bpchar" and not type.is_array:
        scalar, type = Call(OUTPUT["bpchar"], (scalar,), TEXT), TEXT
    if type.enum is not None:
        type = replace(TEXT, is_array=type.is_array, multidimensional=type.multidimensional)
        scalar = cast(scalar, type, binder.parameters, at)
    if type.multidimensional:
        text = Call(multidimensional.TO_JSON, (json_elements(scalar, target, binder.parameters, at),), JSON, at)
        return text if target == JSON else binder.call(function("to_jsonb", (JSON,), at), [text], at)
    if type.is_array:
        return Call(catalogue.calls(OF_ARRAY[target.name])[0], (json_elements(scalar, target, binder.parameters, at),), target, at)
    return binder.call(function(f"to_{target.name}", (type,), at), [scalar], at)


def json_object(binder: ExpressionBinder, row: Scalar, target: Type, at: int | None, pretty: Scalar = FALSE) -> Scalar:
    """Returns a row that is not NULL as an object of json or jsonb. `pretty`: each member of json begins a line."""
    keys = Literal(tuple(f.name for f in row.type.fields), TEXT.array())
    values = Call(catalogue.calls("ARRAY")[0], tuple(as_json(binder, f, target, at) for f in fields(row)), target.array())
    if target == JSONB:
        return Call(catalogue.calls("jsonb_build_object")[0], (keys, values), target, at)
    return Call(TO_JSON, (keys, values, pretty), target, at)


def json_key(binder: ExpressionBinder, scalar: Scalar, node: exp.Expr) -> Scalar:
    """Returns a key of a JSON object: timestamps and booleans as JSON's text, other values as they are."""
    if scalar.type.is_array or scalar.type.name not in ("bool", "timestamp", "timestamptz"):
        return scalar
    path = Literal((), TEXT.array())
    return binder.call(operator("#>>", (JSON, path.type), None), [as_json(binder, scalar, JSON, leftmost(node)), path], None)


def printed(binder: ExpressionBinder, scalar: Scalar, node: exp.Expr) -> Scalar:
    """Returns a value as text, as PostgreSQL's output function of its type prints it."""
    if scalar.type.name == "bool":
        t, f, none = (Literal(v, TEXT) for v in ("t", "f", None))
        return Case(((scalar, t), (Not(scalar), f)), none, TEXT)
    if scalar.type.name in OUTPUT and not scalar.type.is_array:
        return Call(OUTPUT[scalar.type.name], (scalar,), TEXT)
    text = coerce(scalar, TEXT, binder.parameters, "assignment", leftmost(node))
    return text if text is not None else cast(scalar, TEXT, binder.parameters, leftmost(node))
