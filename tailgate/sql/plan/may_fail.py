"""Decides whether evaluating a scalar may raise an error.

A rewrite must not evaluate a condition that may fail for rows for which the query does not evaluate
it. For example, the second half of `a.kind = 'number' AND b.word::int > 5` must stay above the join.
Only the functions listed here are considered safe.
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.sql.functions.datetime import GROWING
from tailgate.sql.plan import Call, Literal, Parameter, Scalar
from tailgate.sql.plan.rewriting import parts
from tailgate.values.times.units import DAY

OPERATORS = frozenset({"=", "<>", "<", "<=", ">", ">=", "->", "->>", "?", "@>", "<@", "||"})
FUNCTIONS = frozenset(
    (
        "lower upper length char_length btrim ltrim rtrim trim concat reverse starts_with md5 date_trunc extract date_part order"
        " ksqldb_wrapped ksqldb_present ksqldb_plus ksqldb_minus ksqldb_times ksqldb_quotient ksqldb_remainder"
        " ksqldb_double_plus ksqldb_double_minus ksqldb_double_times ksqldb_bigint_of_numeric ksqldb_bigint_of_double ksqldb_int_of_double"
    ).split()
)

# a cast from a type to a later one in the same row never fails
WIDER = (("int2", "int4", "int8", "numeric"), ("int2", "int4", "int8", "float8"), ("float4", "float8"))
TEXTS = ("text",)
WHOLE = ("int2", "int4", "int8")


def fallible(scalar: Scalar) -> bool:
    """Returns whether a scalar or one of its parts may fail. The value of `try` and its parts cannot."""
    if isinstance(scalar, Call) and scalar.function.name == "try":
        return False
    return _fails(scalar) or any(map(fallible, parts(scalar)))


def _fails(scalar: Scalar) -> bool:
    """Returns whether a scalar itself may fail, apart from its parts."""
    if isinstance(scalar, Parameter):
        return True
    if not isinstance(scalar, Call):
        return False
    function = scalar.function
    if function.kind == "cast":
        return not _widens(function.arguments[0], scalar)
    if _harmless(function.name, scalar.arguments):
        return False
    if function.name == "||" and scalar.type.multidimensional:  # of arrays with other dimensions
        return True
    if function.name == "date_trunc":  # with an unknown unit
        return True
    if function.name.startswith("extract:") and function.name.removeprefix("extract:") in GROWING:  # of infinity
        return True
    return function.name.partition(":")[0] not in (OPERATORS if function.kind in ("operator", "prefix") else FUNCTIONS)


def _harmless(name: str, arguments: tuple[Scalar, ...]) -> bool:
    """Returns whether a function that may fail in general cannot fail with these literal arguments."""
    values = [a.value if isinstance(a, Literal) else None for a in arguments]
    match name, values:
        case (("~~" | "!~~" | "~~*" | "!~~*"), [_, str() as pattern]):
            return not pattern.endswith("\\")  # an error in LIKE
        case (("%" | "/"), [_, int() as divisor]) if not isinstance(divisor, bool):
            return arguments[0].type.name in WHOLE and divisor not in (0, -1)
        case (("+" | "-"), [int() as time, (int() as months, int() as days, int() as micros)]):
            day = time if arguments[0].type.name == "date" else time // DAY
            return abs(day) < 365_000 and abs(months) < 6000 and abs(days) < 100_000 and abs(micros) < 2**60
        case (("+" | "-" | "*"), [Decimal() as a, Decimal() as b]):
            return a.is_finite() and b.is_finite() and max(abs(a), abs(b)) < 10**9
        case "substring", [_, int(), int() as length]:
            return length >= 0
    return False


def _widens(source: str, cast: Call) -> bool:
    """Returns whether a cast from type `source` never fails."""
    target = cast.type
    if target.is_array or source.endswith("[]"):
        return False
    if target.name in TEXTS or (target.name == source and not target.modifiers):
        return True
    if target.name == "numeric" and target.modifiers:
        precision, scale = target.modifiers
        if source == "numeric" and cast.arguments[0].type.general:
            return False
        if source == "numeric":
            wide, exact = cast.arguments[0].type.decimal
            return precision - scale >= wide - exact + (scale < exact)
        return precision - scale >= {"int2": 5, "int4": 10, "int8": 19}.get(source, 39)
    return any(source in order and target.name in order and order.index(source) < order.index(target.name) for order in WIDER)
