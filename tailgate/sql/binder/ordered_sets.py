"""Ordered-set aggregates that are expressions of other aggregates.

    percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY x)
    ARRAY[percentile_disc(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.9) WITHIN GROUP (ORDER BY x)]

    rank(3) WITHIN GROUP (ORDER BY x)
    1 + count(*) FILTER (WHERE x comes before 3)

    percentile_cont(0.5) WITHIN GROUP (ORDER BY an interval)
    from array_agg(x ORDER BY x) the element in the middle, or between the two in the middle

Source: PostgreSQL 15, src/backend/utils/adt/orderedsetaggs.c; unify_hypothetical_args() in parse_func.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, NumericValueOutOfRange, UndefinedFunction
from tailgate.lake.types import FLOAT8, INTERVAL
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.plan import Call, Case, IsNull, Literal, Scalar

NAMES = ("percentile_cont", "percentile_disc")
# of the rows that pass FILTER ({present}), those that come before the arguments, and those that do not come behind them
HYPOTHETICAL = {
    "rank": "1 + count(*) FILTER (WHERE {present} AND {before})",
    "dense_rank": "1 + count(DISTINCT ROW({values})) FILTER (WHERE {present} AND {before})",
    "percent_rank": "CASE WHEN count(*) FILTER (WHERE {present}) = 0 THEN 0::float8 ELSE"
    " (count(*) FILTER (WHERE {present} AND {before}))::float8 / (count(*) FILTER (WHERE {present}))::float8 END",
    "cume_dist": "(1 + count(*) FILTER (WHERE {present} AND ({before} OR {equal})))::float8"
    " / (1 + count(*) FILTER (WHERE {present}))::float8",
}
_PLACE = "({fraction}::float8 * (count(tg_value) FILTER (WHERE {present}) - 1))"
_LIST = "(array_agg(tg_value ORDER BY tg_value{order}) FILTER (WHERE {present} AND tg_value IS NOT NULL))"
_LOW, _HIGH = f"{_LIST}[floor({_PLACE})::int + 1]", f"{_LIST}[ceil({_PLACE})::int + 1]"
BETWEEN = f"CASE WHEN floor({_PLACE}) = ceil({_PLACE}) THEN {_LOW} ELSE {_LOW} + ({_HIGH} - {_LOW}) * ({_PLACE} - floor({_PLACE})) END"


def fractions(binder: ExpressionBinder, name: str, nodes: list[exp.Expr]) -> tuple[float | None, ...] | None:
    """Returns the fractions if a call has an array of them, else None. Raises 0A000 if they are not constant."""
    if name not in NAMES or len(nodes) != 1:
        return None
    array = binder.bind(nodes[0])
    if not array.type.is_array:
        return None
    if coerce(array, FLOAT8.array(), binder.parameters) is None:
        return None  # the resolution of the function raises the error
    items = _items(array)
    numbers = tuple(
        None if i.value is None else float(i.value) for i in items if i.value is None or isinstance(i.value, int | float | Decimal)
    )
    if len(numbers) == len(items) and any(n is not None for n in numbers):
        return numbers
    hint = "Write the fractions as constants, at least one of them not NULL."
    raise FeatureNotSupported(f"{name} of these fractions is not supported", hint=hint, position=leftmost(nodes[0]))


def _items(array: Scalar) -> list[Literal]:
    """Returns the elements of an array if all are constants, else an empty list."""
    if isinstance(array, Literal):
        return [Literal(v, array.type.element) for v in array.value] if isinstance(array.value, tuple) else []
    if not isinstance(array, Call) or array.function.name != "ARRAY":
        return []
    items = []
    for item in array.arguments:
        while isinstance(item, Call) and item.function.kind == "cast":
            (item,) = item.arguments
        items.append(item)
    constants = [i for i in items if isinstance(i, Literal)]
    return constants if len(constants) == len(items) else []


def of_each(fractions: tuple[float | None, ...], percentile: Callable[[exp.Expr], Scalar]) -> Scalar:
    """Returns the array of the percentiles, or NULL if no value is aggregated. `percentile` binds that of one fraction."""
    percentiles = {f: percentile(_number(f)) for f in fractions if f is not None}
    type = next(iter(percentiles.values())).type
    items = tuple(Literal(None, type) if f is None else percentiles[f] for f in fractions)
    array = Call(catalogue.calls("ARRAY")[0], items, type.array())
    return Case(((IsNull(next(iter(percentiles.values()))), Literal(None, array.type)),), array, array.type)


def _number(fraction: float) -> exp.Expr:
    type = exp.DataType(this=exp.DType.USERDEFINED, kind=FLOAT8.name, expressions=[])
    return exp.Cast(this=exp.Literal.string(repr(fraction)), to=type)


# --- expressions of other aggregates ------------------------------------------------------------------------------------------------


def hypothetical(
    binder: ExpressionBinder, name: str, arguments: Sequence[exp.Expr], within: Sequence[exp.Expr], where: exp.Expr | None, at: int | None
) -> exp.Expr:
    """Returns the expression of a hypothetical-set aggregate. Raises 42883, 42804, 0A000."""
    if len(arguments) != len(within):
        types = (binder.bind(node).type for node in (*arguments, *(item.this for item in within)))
        hint = (
            f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {len(arguments)})"
            f" must match the number of ordering columns (here {len(within)})."
        )
        raise UndefinedFunction(
            f"function {name}({', '.join(str(bare_type(type)) for type in types)}) does not exist", hint=hint, position=at
        )
    parts: dict[str, exp.Expr] = {}
    before, equal = "", []
    for number, (argument, item) in reversed(list(enumerate(zip(arguments, within, strict=True), 1))):
        if argument.find(exp.Column, exp.Subquery) is not None:
            hint = "Write the values as constants or parameters."
            raise FeatureNotSupported(f"{name} of these arguments is not supported", hint=hint, position=leftmost(argument))
        binder.unify([item.this, argument], [binder.bind(item.this), binder.bind(argument)], "WITHIN GROUP")
        value, other = f"tg_value_{number}", f"tg_argument_{number}"
        parts |= {value: item.this, other: argument}
        absent, present = (value, other) if item.args.get("nulls_first") else (other, value)
        sign = ">" if item.args.get("desc") else "<"
        first = f"{absent} IS NULL AND {present} IS NOT NULL OR coalesce({value} {sign} {other}, false)"
        equal.append(f"{value} IS NOT DISTINCT FROM {other}")
        before = f"({first} OR {equal[-1]} AND {before})" if before else f"({first})"
    texts = {"before": before, "equal": " AND ".join(equal), "values": ", ".join(name for name in parts if name.startswith("tg_value"))}
    return _filled(HYPOTHETICAL[name], parts, where, texts)


def interval_percentile(fraction: Scalar, item: exp.Expr, where: exp.Expr | None, at: int | None) -> exp.Expr:
    """Returns the expression of percentile_cont of intervals. Raises 0A000 and 22003."""
    value = fraction.value if isinstance(fraction, Literal) else ()
    if value is not None and not isinstance(value, float):
        raise FeatureNotSupported("percentile_cont of other than a literal is not supported for intervals", position=at)
    if value is not None and not 0 <= value <= 1:
        raise NumericValueOutOfRange(f"percentile value {value:g} is not between 0 and 1")
    order = (" DESC" if item.args.get("desc") else "") + f" NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"
    return _filled(BETWEEN, {"tg_value": item.this}, where, {"fraction": "NULL" if value is None else f"'{value!r}'", "order": order})


def of_intervals(binder: ExpressionBinder, name: str, within: Sequence[exp.Expr]) -> bool:
    """Returns whether a call is percentile_cont of intervals."""
    return name == "percentile_cont" and len(within) == 1 and binder.bind(within[0].this).type == INTERVAL


def _filled(template: str, parts: Mapping[str, exp.Expr], where: exp.Expr | None, texts: Mapping[str, str]) -> exp.Expr:
    """Returns the expression of a template, with parts in place of the columns with their names."""
    parts = parts if where is None else {**parts, "tg_present": where}
    tree = parse_expression(template.format(present="true" if where is None else "tg_present", **texts))
    for node in tree.walk():
        node.meta.pop("position", None)
    for column in list(tree.find_all(exp.Column)):
        column.replace(exp.Paren(this=parts[column.name].copy()))
    return tree
