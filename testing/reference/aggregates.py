"""Reference implementation of aggregates, computed from all values.

A member is (arguments, order keys, copies): the values of one row and its multiplicity. Rows that
FILTER excludes are not members.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tailgate.sql import plan
from tailgate.sql.compute.catalogue import UDFS
from testing.reference import general
from testing.reference.general import General, form
from testing.reference.values import Failure, Value, fit, half_up, order

Member = tuple[tuple[Value, ...], tuple[Value, ...], int]
WITHIN_GROUP = ("mode", "percentile_cont", "percentile_disc")
SAMPLES = ("var_samp", "variance", "stddev_samp", "stddev", "covar_samp")
DIGITS = Context(prec=60)


def total(call: plan.AggregateCall, members: Sequence[Member]) -> Value:
    """Returns the value of an aggregate."""
    rows = in_order(call, members)
    name = call.function.name
    if not call.function.arguments:
        return len(rows)
    if call.distinct:
        rows = list({tuple(map(key, r)): r for r in reversed(rows)}.values())[::-1]
    if call.limit is not None:
        rows = rows[: call.limit] if call.limit > 0 else rows[call.limit :]
    return TOTALS[name](call, rows)


def key(v: Value) -> Any:
    return ("none",) if v is None else order(v) if not isinstance(v, tuple) else tuple(map(key, v))


def sort_key(v: Value, descending: bool = False, nulls_first: bool = False) -> Any:
    """Returns a key that sorts like ORDER BY."""
    if v is None:
        return (0 if nulls_first else 2, 0)
    return (1, Reversed(sortable(v)) if descending else sortable(v))


def tie_key(v: Value) -> Any:
    """Returns a key of rows that are equal by ORDER BY: they are sorted by their stored forms."""
    if isinstance(v, General):
        v = form(v)
    return (1, [tie_key(e) for e in v]) if isinstance(v, tuple) else sort_key(v)


def sortable(v: Value) -> Any:
    return [sort_key(e) for e in v] if isinstance(v, tuple) else order(v)


class Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


def in_order(call: plan.AggregateCall, members: Sequence[Member]) -> list[tuple[Value, ...]]:
    """Returns the arguments of each row; for ordered-set aggregates, the values to sort."""

    def place(member: Member) -> Any:
        arguments, keys, _ = member
        order_key = [sort_key(v, k.descending, k.nulls_first) for v, k in zip(keys, call.order, strict=True)]
        return order_key + [tie_key(v) for v in arguments]

    within = call.function.name in WITHIN_GROUP
    return [keys if within else arguments for arguments, keys, n in sorted(members, key=place) for _ in range(n)]


Rows = list[tuple[Value, ...]]


def count(call: plan.AggregateCall, rows: Rows) -> Value:
    return sum(r[0] is not None for r in rows)


def sums(call: plan.AggregateCall, rows: Rows) -> Value:
    values = [r[0] for r in rows if r[0] is not None]
    average = call.function.name == "avg"
    if not values:
        return None
    if isinstance(values[0], tuple):  # intervals
        assert not average
        return tuple(map(sum, zip(*values, strict=True)))
    if isinstance(values[0], float):
        summed = float_sum(values)
        return fit(summed / len(values) if average and math.isfinite(summed) else summed, call.type)
    if call.type.general:
        values = [fit(v, call.type) for v in values]
        return general.average(values) if average else general.total(values)
    exact = sum(map(Fraction, values))
    return fit(exact / len(values) if average else exact, call.type)


def float_sum(values: Sequence[float]) -> float:
    """Returns the exact sum, rounded once at the end."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return math.nan if any(map(math.isnan, special)) or len(set(special)) > 1 else special[0]
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        raise Failure("22003", "value out of range: overflow") from None


def extreme(call: plan.AggregateCall, rows: Rows) -> Value:
    values = [r[0] for r in rows if r[0] is not None]
    key = sortable if call.arguments[0].type.is_array else order
    return (max if call.function.name == "max" else min)(values, key=key, default=None)


def by_another(call: plan.AggregateCall, rows: Rows) -> Value:
    last = call.function.name == "max_by"
    candidates = sorted((r for r in rows if r[1] is not None), key=lambda r: (sort_key(r[1], last), sort_key(r[0])))
    return candidates[0][0] if candidates else None


def by_offset(call: plan.AggregateCall, rows: Rows) -> Value:
    last = call.function.name == "latest_by_offset"
    candidates = sorted((r for r in rows if None not in r), key=lambda r: (sort_key(r[1], last), sort_key(r[0])))
    return candidates[0][0] if candidates else None


def bits(call: plan.AggregateCall, rows: Rows) -> Value:
    values = [r[0] for r in rows if r[0] is not None]
    if not values:
        return None
    if isinstance(values[0], str):  # bit strings
        total = bits(call, [(int(v, 2),) for v in values])
        return f"{total:0{len(values[0])}b}"
    out = values[0]
    for v in values[1:]:
        match call.function.name:
            case "bit_and" | "bool_and" | "every":
                out = out & v
            case "bit_or" | "bool_or":
                out = out | v
            case _:
                out = out ^ v
    return out


def variance(call: plan.AggregateCall, rows: Rows) -> Value:
    values = [r[0] for r in rows if r[0] is not None]
    n, name = len(values), call.function.name
    if n < (2 if name in SAMPLES else 1):
        return None
    if call.type.general:
        values = [fit(v, call.type) for v in values]
        return general.variance(values, sample=name in SAMPLES, root=name.startswith("stddev"))
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = list(map(Fraction, values))
    result = (n * sum(v * v for v in exact) - sum(exact) ** 2) / (n * (n - 1 if name in SAMPLES else n))
    root = name.startswith("stddev")
    if call.type.name == "float8":
        return float(rooted(result) if root else result)
    return fit(Fraction(rooted(result)), call.type) if root else fit(result, call.type)


def decimal(value: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def rooted(value: Fraction) -> Decimal:
    return DIGITS.sqrt(decimal(value))


def regression(call: plan.AggregateCall, rows: Rows) -> Value:
    pairs = [r for r in rows if None not in r]
    n, name = len(pairs), call.function.name
    if name == "regr_count":
        return n
    if n < (2 if name in SAMPLES else 1):
        return None
    ys, xs = ([Fraction(p[i]) for p in pairs] for i in (0, 1))
    sx, sy = sum(xs), sum(ys)
    xx, yy = sum(x * x for x in xs) - sx * sx / n, sum(y * y for y in ys) - sy * sy / n
    xy = sum(x * y for x, y in zip(xs, ys, strict=True)) - sx * sy / n
    match name:
        case "regr_avgx" | "regr_avgy":
            return float((sx if name == "regr_avgx" else sy) / n)
        case "regr_sxx" | "regr_syy" | "regr_sxy":
            return float({"regr_sxx": xx, "regr_syy": yy, "regr_sxy": xy}[name])
        case "covar_pop" | "covar_samp":
            return float(xy / (n if name == "covar_pop" else n - 1))
        case "corr":
            return None if not xx or not yy else float(DIGITS.divide(decimal(Fraction(xy)), rooted(Fraction(xx * yy))))
    if not xx:
        return None
    if name == "regr_r2":
        return float(xy * xy / (xx * yy)) if yy else 1.0
    return float(xy / xx if name == "regr_slope" else (sy - sx * xy / xx) / n)


def array(call: plan.AggregateCall, rows: Rows) -> Value:
    return tuple(r[0] for r in rows) or None


def joined(call: plan.AggregateCall, rows: Rows) -> Value:
    out: str | None = None
    for text, delimiter in rows:
        if text is not None:
            out = text if out is None else out + (delimiter or "") + text
    return out


def json_array(call: plan.AggregateCall, rows: Rows) -> Value:
    return "[" + ", ".join("null" if r[0] is None else r[0] for r in rows) + "]" if rows else None


def json_object(call: plan.AggregateCall, rows: Rows) -> Value:
    if any(k is None for k, _ in rows):
        raise Failure("22023", "field name must not be null")
    if call.function.name == "json_object_agg":
        return "{ " + ", ".join(f"{json.dumps(k, ensure_ascii=False)} : {v or 'null'}" for k, v in rows) + " }" if rows else None
    members = sorted(dict(rows).items(), key=lambda m: (len(m[0].encode()), m[0].encode()))
    return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {v or 'null'}" for k, v in members) + "}" if rows else None


def mode(call: plan.AggregateCall, rows: Rows) -> Value:
    values = [r[0] for r in rows if r[0] is not None]
    counts: dict[Any, int] = {}
    for v in values:
        counts[order(v)] = counts.get(order(v), 0) + 1
    return max(values, key=lambda v: counts[order(v)], default=None)


def percentile(call: plan.AggregateCall, rows: Rows) -> Value:
    assert isinstance(call.arguments[0], plan.Literal)
    fraction: Any = call.arguments[0].value
    values = [r[0] for r in rows if r[0] is not None]
    if not values:
        return None
    if call.function.name == "percentile_disc":
        return values[max(math.ceil(fraction * len(values)) - 1, 0)]
    place = fraction * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low if math.floor(place) == math.ceil(place) else low + (place - math.floor(place)) * (high - low)


def ranges(call: plan.AggregateCall, rows: Rows) -> Value:
    return UDFS[call.function.name].function([r[0] for r in rows])


REGRESSIONS = """
    corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
""".split()
TOTALS: dict[str, Callable[[plan.AggregateCall, Rows], Value]] = {
    "count": count,
    "sum": sums,
    "avg": sums,
    "min": extreme,
    "single_value": extreme,
    "one_of": extreme,
    "any_value": extreme,
    "max": extreme,
    "min_by": by_another,
    "max_by": by_another,
    "earliest_by_offset": by_offset,
    "latest_by_offset": by_offset,
    **dict.fromkeys(("bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor"), bits),
    **dict.fromkeys(("var_pop", *SAMPLES[:2], "stddev_pop", *SAMPLES[2:4]), variance),
    **dict.fromkeys(REGRESSIONS, regression),
    "array_agg": array,
    "range_agg": ranges,
    "range_intersect_agg": ranges,
    "string_agg": joined,
    "json_agg": json_array,
    "jsonb_agg": json_array,
    "json_object_agg": json_object,
    "jsonb_object_agg": json_object,
    "mode": mode,
    "percentile_disc": percentile,
    "percentile_cont": percentile,
}
__all__ = ["Member", "half_up", "total"]
