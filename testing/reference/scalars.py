"""The reference's scalars: evaluates expressions, casts and functions of one row in plain Python.

Raises `Failure` with the SQLSTATE if the expression fails for the row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.compute.catalogue import UDFS
from testing.reference import general
from testing.reference.aggregates import sortable
from testing.reference.sets import json_text
from testing.reference.values import NAN, Failure, Row, Value, fit, normal, order


def holds(condition: plan.Scalar, row: Row) -> bool:
    """Returns whether a condition is true. Stops at the first argument of AND that is not."""
    if isinstance(condition, plan.And):
        return all(holds(a, row) for a in condition.arguments)
    return value(condition, row) is True


MOMENTS: dict[str, Callable[[int], Value]] = {
    "date": lambda days: date(1970, 1, 1) + timedelta(days=days),
    "timestamp": lambda micros: datetime(1970, 1, 1) + timedelta(microseconds=micros),
    "timestamptz": lambda micros: datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros),
}


def value(scalar: plan.Scalar, row: Row) -> Value:
    match scalar:
        case plan.Column(index=index):
            return row[index]
        case plan.Literal(value=int() as number, type=type) if type.name in MOMENTS:
            return MOMENTS[type.name](number)
        case plan.Literal(value=literal, type=type):
            return normal(fit(literal, type) if isinstance(literal, int | Decimal) and not isinstance(literal, bool) else literal)
        case plan.Call():
            return call(scalar, tuple(value(a, row) for a in scalar.arguments))
        case plan.And(arguments=arguments):
            return conjunction([value(a, row) for a in arguments])
        case plan.Or(arguments=arguments):
            return opposite(conjunction([opposite(value(a, row)) for a in arguments]))
        case plan.Not(argument=inner):
            return opposite(value(inner, row))
        case plan.IsNull(argument=inner):
            return value(inner, row) is None
        case plan.IsDistinct(left=left, right=right):
            a, b = value(left, row), value(right, row)
            return (a is None) != (b is None) if a is None or b is None else order(a) != order(b)
        case plan.InList(argument=inner, items=items):
            a = value(inner, row)
            comparisons = [compare("=", a, value(i, row)) for i in items]
            return opposite(conjunction([opposite(f) for f in comparisons]))
        case plan.Case(branches=branches, otherwise=otherwise):
            return chosen(branches, otherwise, row)
        case plan.Coalesce(arguments=arguments):
            for a in arguments:
                if (v := value(a, row)) is not None:
                    return v
            return None
        case plan.GreatestLeast(which=which, arguments=arguments):
            values = [v for a in arguments if (v := value(a, row)) is not None]
            return (max if which == "greatest" else min)(values, key=order) if values else None
    raise NotImplementedError(type(scalar).__name__)


def chosen(branches: Sequence[tuple[plan.Scalar, plan.Scalar]], otherwise: plan.Scalar, row: Row) -> Value:
    for when, then in branches:
        if value(when, row) is True:
            return value(then, row)
    return value(otherwise, row)


def conjunction(values: Sequence[bool | None]) -> bool | None:
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def opposite(v: bool | None) -> bool | None:
    return None if v is None else not v


def compare(sign: str, a: Value, b: Value) -> bool | None:
    if a is None or b is None:
        return None
    x, y = sortable(a), sortable(b)
    return {"=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]


def call(node: plan.Call, arguments: Row) -> Value:
    """Applies a function, operator or cast to values."""
    name, kind = node.function.name, node.function.kind
    if node.function.strict and any(a is None for a in arguments):
        return None
    if kind == "cast":
        return cast(arguments[0], node.arguments[0].type, node.type)
    if name == "single_row":
        if arguments[1] is not None and arguments[1] > 1:
            raise Failure("21000", "more than one row returned by a subquery used as an expression")
        return arguments[0]
    if name in ("=", "<>", "!=", "<", "<=", ">", ">="):
        return compare("<>" if name == "!=" else name, *arguments)
    if name in ("+", "-", "*", "/", "%", "mod"):
        return arithmetic("%" if name == "mod" else name, arguments, node)
    if name == "[]":
        array, index = arguments
        return array[index - 1] if 1 <= index <= len(array) else None
    if name == "||":
        return "".join(arguments)
    if ":" in name:
        name, _, unit = name.partition(":")
        arguments = (unit, *arguments)
    if name in FUNCTIONS:
        return normal(FUNCTIONS[name](*arguments))
    raise NotImplementedError(str(node.function))


def arithmetic(sign: str, arguments: Row, node: plan.Call) -> Value:
    if node.type.general:
        a, b = (fit(v, node.type) for v in (arguments if len(arguments) == 2 else (Decimal(0), *arguments)))
        try:
            return general.arithmetic(sign, a, b)
        except general.DivisionByZero:
            raise Failure("22012", "division by zero") from None
    if len(arguments) == 1:
        return fit(-arguments[0] if sign == "-" else arguments[0], node.type)
    a, b = arguments
    if isinstance(a, float) or isinstance(b, float):
        return float_arithmetic(sign, float(a), float(b))
    if isinstance(a, datetime) and isinstance(b, tuple):
        months, days, micros = b
        assert not months
        step = timedelta(days=days, microseconds=micros)
        return a + step if sign == "+" else a - step
    if isinstance(a, tuple) and isinstance(b, datetime):
        return arithmetic(sign, (b, a), node)
    if isinstance(a, datetime) and isinstance(b, datetime):
        micros = (a - b) // timedelta(microseconds=1)  # days plus the rest below one day
        days = math.trunc(Fraction(micros, 86_400_000_000))
        return (0, days, micros - days * 86_400_000_000)
    if isinstance(a, date) or isinstance(b, date):
        raise NotImplementedError(str(node.function))
    if sign in ("/", "%") and b == 0:
        raise Failure("22012", "division by zero")
    x, y = Fraction(a), Fraction(b)
    if sign == "%":
        return fit(x - y * math.trunc(x / y), node.type)
    if sign == "/":
        whole = node.type.name != "numeric"
        return fit(Fraction(math.trunc(x / y)) if whole else x / y, node.type)
    return fit({"+": x + y, "-": x - y, "*": x * y}[sign], node.type)


def float_arithmetic(sign: str, a: float, b: float) -> float:
    if sign == "/" and b == 0 and not math.isnan(a):
        raise Failure("22012", "division by zero")
    with_nan = math.isnan(a) or math.isnan(b)
    try:
        out = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b if not with_nan else NAN}[sign]()
    except OverflowError:
        out = math.inf
    if math.isinf(out) and not math.isinf(a) and not math.isinf(b):
        raise Failure("22003", "value out of range: overflow")
    if out == 0 and sign in ("*", "/") and a != 0 and not math.isinf(b) and (sign == "/" or b != 0):
        raise Failure("22003", "value out of range: underflow")
    return normal(out)


# ---- casts and functions -----------------------------------------------------------------------


def cast(v: Value, source: Type, to: Type) -> Value:
    if to.name in ("int2", "int4", "int8"):
        if isinstance(v, str):
            if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", v):
                raise Failure("22P02", f'invalid input syntax for type {to}: "{v}"')
            return fit(int(v), to)
        if isinstance(v, float):
            if not math.isfinite(v):
                raise Failure("22003", f"{to} out of range")
            return fit(round(v), to)  # half to even, like C's rint
        return fit(int(v) if isinstance(v, bool) else v, to)
    if to.name == "numeric":
        if isinstance(v, str):
            try:
                v = Decimal(v.strip())
            except InvalidOperation:
                raise Failure("22P02", f'invalid input syntax for type numeric: "{v}"') from None
        if isinstance(v, float):
            if not math.isfinite(v):
                raise Failure("22003", "not a number in a numeric")
            v = Decimal(f"{v:.15g}")
        return fit(v, to)
    if to.name in ("float8", "float4"):
        if isinstance(v, str):
            try:
                return normal(float(v))
            except ValueError:
                raise Failure("22P02", f'invalid input syntax for type {to}: "{v}"') from None
        return fit(v, to)
    if to.name == "bool":
        if isinstance(v, str):
            word = v.strip().lower()
            if word in ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"):
                return True
            if word in ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"):
                return False
            raise Failure("22P02", f'invalid input syntax for type boolean: "{v}"')
        return bool(v)
    if to.name in ("text", "varchar"):
        return text(v, source)
    if to.name == "timestamp" and isinstance(v, date) and not isinstance(v, datetime):
        return datetime(v.year, v.month, v.day)
    if to.name == "date" and isinstance(v, datetime):
        return v.date()
    if to.name == "bit" and isinstance(v, int):
        length = to.modifiers[0]
        return f"{v & (1 << length) - 1:0{length}b}"
    if source.name == to.name:
        return v
    raise NotImplementedError(f"{source} to {to}")


def text(v: Value, type: Type) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, Decimal):
        return f"{v:f}"
    if isinstance(v, datetime):
        out = v.strftime("%Y-%m-%d %H:%M:%S")
        return out + (f".{v.microsecond:06d}".rstrip("0") if v.microsecond else "")
    if isinstance(v, float):
        raise NotImplementedError("a float as text")
    return str(v)


def date_trunc(unit: str, v: datetime) -> datetime:
    parts = {"year": 1, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6}
    if unit not in parts:
        raise Failure("22023", f'unit "{unit}" not recognized for type timestamp without time zone')
    fields = list(v.timetuple()[:6])
    for i in range(parts[unit], 6):
        fields[i] = 1 if i in (1, 2) else 0
    return datetime(*fields, tzinfo=v.tzinfo)


def date_bin(stride: Any, v: datetime, origin: datetime) -> datetime:
    months, days, micros = stride
    assert not months
    step = timedelta(days=days, microseconds=micros)
    return origin + (v - origin) // step * step


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "date_bin": date_bin,
    "order": lambda v: v,  # sort form of text in joins; equal exactly for equal values
    "to_json": json_text,
    "to_jsonb": json_text,
    "concat": lambda *texts: "".join(t for t in texts if t is not None),
    "abs": abs,
    "length": len,
    "char_length": len,
    "upper": str.upper,
    "lower": str.lower,
    "date_trunc": date_trunc,
    "int4range": lambda *bounds: UDFS["range"].function("int4range", [None if b is None else str(b) for b in bounds], ["[)"]),
}
