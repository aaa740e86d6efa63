"""One scalar as Spark SQL, over columns c0, c1, …

Spark runs in ANSI mode, at time zone UTC, with `spark.sql.decimalOperations.allowPrecisionLoss = false`, and knows the engine's
functions tg_*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from typing_extensions import assert_never

from lake.errors import FeatureNotSupported
from lake.types import Type
from sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
    Value,
)  # fmt: skip
from sql.templates import filled


def expression(scalar: Scalar, names: Sequence[str] | None = None) -> str:
    """Spark SQL of a scalar. `names`: what its columns are called; c0, c1, … by default.

    A literal beyond what Spark's types hold, or a function only DuckDB has, is 0A000.
    """

    def text(s: Scalar) -> str:
        match s:
            case Column(index=index):
                return f"c{index}" if names is None else names[index]
            case Literal(value=value, type=type):
                return literal(value, type)
            case Parameter(number=number):
                raise FeatureNotSupported(f"parameter ${number} in a view is not supported")
            case Call(function=function, arguments=arguments, type=type):
                if not function.spark:
                    raise FeatureNotSupported(f"{function} in a view is not supported")
                return filled(function.spark, [text(a) for a in arguments], [a.type for a in arguments], type, type.spark)
            case And(arguments=arguments):
                return "(" + " AND ".join(map(text, arguments)) + ")"
            case Or(arguments=arguments):
                return "(" + " OR ".join(map(text, arguments)) + ")"
            case Not(argument=IsNull(argument=argument)):
                return f"({text(argument)} IS NOT NULL)"
            case Not(argument=argument):
                return f"(NOT {text(argument)})"
            case IsNull(argument=argument):
                return f"({text(argument)} IS NULL)"
            case IsDistinct(left=left, right=right):
                return f"(NOT ({text(left)} <=> {text(right)}))"
            case InList(argument=argument, items=items):
                return f"({text(argument)} IN ({', '.join(map(text, items))}))"
            case Case(branches=branches, otherwise=otherwise):
                whens = " ".join(f"WHEN {text(c)} THEN {text(t)}" for c, t in branches)
                return f"(CASE {whens} ELSE {text(otherwise)} END)"
            case Coalesce(arguments=arguments):
                return f"coalesce({', '.join(map(text, arguments))})"
            case Extreme(which=which, arguments=arguments):
                return f"{which}({', '.join(map(text, arguments))})"
            case _:
                assert_never(s)

    return text(scalar)


def literal(value: Value, type: Type) -> str:
    """A literal of exactly the type's stored form."""
    if value is None:
        return f"CAST(NULL AS {type.spark})"
    if type.is_array:
        assert isinstance(value, tuple)
        return f"CAST(array({', '.join(literal(v, type.element) for v in value)}) AS {type.spark})"
    match type.name, value:
        case "bool", bool():
            return "true" if value else "false"
        case "int4", int():
            return f"CAST('{value}' AS INT)" if value == -(2**31) else f"({value})" if value < 0 else str(value)
        case (("int2" | "int8" | "oid" | "time"), int()):
            return f"CAST('{value}' AS {type.spark})"
        case (("float4" | "float8"), float()):
            shown = "NaN" if math.isnan(value) else "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value)
            return f"CAST('{shown}' AS {type.spark})"
        case "numeric", Decimal():
            return f"CAST('{value:f}' AS {type.spark})"
        case "bytea", bytes():
            return f"X'{value.hex()}'"
        case "date", date():
            return f"DATE'{value.isoformat()}'"
        case "timestamp", datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case "timestamptz", datetime():
            return f"TIMESTAMP_LTZ'{value.replace(tzinfo=None).isoformat(sep=' ')}+00:00'"
        case "interval", (int() as months, int() as days, int() as micros):
            return f"named_struct('months', CAST({months} AS INT), 'days', CAST({days} AS INT), 'micros', CAST({micros} AS BIGINT))"
        case _, str():
            return quoted(value)
    raise FeatureNotSupported(f"a literal of type {type} is not supported")


def quoted(text: str) -> str:
    """A string literal; Spark reads backslashes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
