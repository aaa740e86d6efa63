"""Result types of expressions of numerics: Spark's, with as few digits as always suffice, up to 38.

The scale of a result is the one that PostgreSQL shows. Its precision follows from the operands, so
short numbers are computed as 64-bit integers, and a result of at most 38 digits never overflows.
Views that were created by earlier versions keep the types of `UNIFORM`, in which every result has 38
digits: the state of their operators has these types.

    integers                 (5, 0), (10, 0), (19, 0)
    a literal                as it is written
    a + b, a - b             (max(p1 - s1, p2 - s2) + 1 + max(s1, s2), max(s1, s2))
    a % b                    (min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    a * b                    (p1 + p2 + 1, s1 + s2)
    round(a, n), trunc(a, n) (p - s + 1 + n, n)
    round(a), ceil, floor    (p - s + 1, 0)
    sum                      (38, s)
    min, max, abs, - a       as the argument

By the rules `OF_GENERAL`, which the queries of ksqlDB and views of earlier versions follow, a result is general
(`lake.types`) if an operand is. By the rules `WITH_GENERAL`, all other results are general, too: quotients, averages,
roots, results that may have more than 38 digits, and choices between values of several scales. Queries that no view
maintains follow these rules. New views follow the rules `MAINTAINED`: the same, but the arguments of functions that only
DuckDB computes with general numerics are fixed. By the rules `FIXED_RECURSION`, which earlier views follow, so are the
numerics of recursive queries with UNION, SEARCH or CYCLE, and the argument of to_char. By the rules `FIXED_ARRAYS` of still
earlier ones, so are the elements of arrays, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from decimal import Decimal
from functools import wraps

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import GENERAL, NUMERIC, NUMERIC_PRECISION, NUMERIC_SCALE, Type, numeric

# the rules by which a query is typed
UNIFORM, EXACT, WITH_GENERAL, OF_GENERAL, FIXED_ARRAYS, FIXED_RECURSION, MAINTAINED = 1, 2, 3, 4, 5, 6, 7
DIGITS = {"int2": 5, "int4": 10, "int8": 19}  # of integers
DIVISOR_DIGITS_MIN = 9  # before the decimal point of a divisor
PRODUCT_SCALE_MAX = 18  # of a product that may have more than 38 digits; a larger scale leaves too few digits before the point

_rules: ContextVar[int] = ContextVar("numeric_rules", default=EXACT)


@contextmanager
def typed_by(rules: int) -> Iterator[None]:
    """Types expressions by these rules within the context."""
    token = _rules.set(rules)
    try:
        yield
    finally:
        _rules.reset(token)


def sized(precision: int, scale: int) -> Type:
    """Returns a numeric with this scale and at most 38 digits; with exactly 38 by the rules of earlier versions."""
    return Type("numeric", (NUMERIC_PRECISION if _rules.get() == UNIFORM else min(precision, NUMERIC_PRECISION), scale), declared=False)


def may_be_general() -> bool:
    """Returns whether results of fixed operands may be general."""
    return _rules.get() in (WITH_GENERAL, FIXED_ARRAYS, FIXED_RECURSION, MAINTAINED)


def keeps_general() -> bool:
    """Returns whether general columns are read as they are; otherwise with 16 digits after the decimal point."""
    return _rules.get() in (WITH_GENERAL, OF_GENERAL, FIXED_ARRAYS, FIXED_RECURSION, MAINTAINED)


def is_maintained() -> bool:
    """Returns whether general results are only those that a view can maintain."""
    return _rules.get() in (OF_GENERAL, FIXED_ARRAYS, FIXED_RECURSION, MAINTAINED)


def is_ad_hoc() -> bool:
    """Returns whether the query is one that no view maintains, and that is bound again whenever it runs."""
    return _rules.get() == WITH_GENERAL


def elements_may_be_general() -> bool:
    """Returns whether elements of arrays, values that an aggregate collects, and results of factorial and to_number may be general."""
    return _rules.get() in (WITH_GENERAL, FIXED_RECURSION, MAINTAINED)


def of_array_literal(type: Type) -> Type:
    """Returns the type of a quoted literal or a parameter: in a query, elements of an array of numerics have a display scale each."""
    is_general = type.is_array and type.element == NUMERIC and elements_may_be_general() and not is_maintained()
    return GENERAL.array(multidimensional=type.multidimensional) if is_general else type


def recursion_may_be_general() -> bool:
    """Returns whether numerics of recursive queries with UNION, SEARCH or CYCLE, and the argument of to_char, may be general."""
    return _rules.get() in (WITH_GENERAL, MAINTAINED)


@contextmanager
def without_general() -> Iterator[None]:
    """Types expressions by rules without general results within the context."""
    with typed_by(EXACT if keeps_general() else _rules.get()):
        yield


@contextmanager
def of_elements(is_array: bool = True) -> Iterator[None]:
    """Types the elements of arrays within the context: in earlier views they are fixed. Other values follow the rules as they are."""
    with typed_by(EXACT if is_array and keeps_general() and not elements_may_be_general() else _rules.get()):
        yield


def unscaled(fixed: Type) -> Type:
    """Returns the type of a result whose values have a display scale each; `fixed` by rules without general numerics."""
    return GENERAL if may_be_general() else fixed


def _sized(precision: int, scale: int) -> Type:
    """Returns a numeric with this scale, general if it may have more than 38 digits."""
    return GENERAL if may_be_general() and max(precision, scale) > NUMERIC_PRECISION else sized(precision, scale)


def _general_if_any_is(result: Callable[[tuple[Type, ...]], Type]) -> Callable[[tuple[Type, ...]], Type]:
    """Makes the result general if an operand is; `result` is for fixed operands."""

    @wraps(result)
    def type_of(types: tuple[Type, ...]) -> Type:
        return GENERAL if any(t.general for t in types) else result(types)

    return type_of


def full(type: Type) -> Type:
    """Returns the type of a column that shows a computed numeric: 38 digits, so that it stays if the expression changes."""
    is_computed = type.name == "numeric" and not type.declared and not type.general
    return replace(type, modifiers=(NUMERIC_PRECISION, type.decimal[1])) if is_computed else type


def widest(type: Type) -> Type:
    """Returns the type of a column of a recursive query, whose steps may change the scale of a computed numeric."""
    if type.name != "numeric" or type.declared:
        return full(type)
    if type.is_array:
        return GENERAL.array(multidimensional=type.multidimensional) if recursion_may_be_general() else full(type)
    return unscaled(full(type))


def of_literal(value: Decimal) -> Type:
    """Returns the type of a number as it is written.

    >>> of_literal(Decimal("1.10")).modifiers, of_literal(Decimal("0.05")).modifiers, of_literal(Decimal("2E+3")).modifiers
    ((3, 2), (2, 2), (4, 0))
    """
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return GENERAL
    precision, scale = len(digits) + max(exponent, 0), max(0, -exponent)
    if keeps_general() and max(precision, scale) > NUMERIC_PRECISION:
        return GENERAL
    scale = min(scale, NUMERIC_PRECISION)
    return sized(max(precision, scale, 1), scale)


@_general_if_any_is
def common(types: tuple[Type, ...]) -> Type:
    """Returns a numeric with room for the values of all types: numerics and integers. Those of several scales are general."""
    type = comparable(types)
    same_scale = all((t.decimal[1] if t.name == "numeric" else 0) == type.decimal[1] for t in types)
    return type if same_scale else unscaled(type)


def comparable(types: Iterable[Type]) -> Type:
    """Returns a fixed numeric with room for the values of all types: numerics that are not general, and integers."""
    sizes = [t.decimal if t.name == "numeric" else (DIGITS.get(t.name, NUMERIC_PRECISION), 0) for t in types]
    scale = max(s for _, s in sizes)
    return sized(max(p - s for p, s in sizes) + scale, scale)


# --- result types of entries of the catalogue ----------------------------------------------------


@_general_if_any_is
def common_scale(types: tuple[Type, ...]) -> Type:
    scale = max(t.decimal[1] for t in types)
    return _sized(max(t.decimal[0] - t.decimal[1] for t in types) + 1 + scale, scale)


@_general_if_any_is
def remainder_scale(types: tuple[Type, ...]) -> Type:
    scale = max(t.decimal[1] for t in types)
    return _sized(min(t.decimal[0] - t.decimal[1] for t in types) + scale, scale)


@_general_if_any_is
def largest_scale(types: tuple[Type, ...]) -> Type:
    return numeric(max(t.decimal[1] for t in types))


@_general_if_any_is
def product_scale(types: tuple[Type, ...]) -> Type:
    scales = [t.decimal[1] for t in types]
    precision = sum(t.decimal[0] for t in types)
    if may_be_general():
        return _sized(precision, sum(scales))
    if precision > NUMERIC_PRECISION or _rules.get() == UNIFORM:
        return numeric(min(sum(scales), max(*scales, PRODUCT_SCALE_MAX)))
    return sized(precision + 1, sum(scales))


@_general_if_any_is
def quotient_scale(types: tuple[Type, ...]) -> Type:
    if may_be_general():
        return GENERAL
    return numeric(max(NUMERIC_SCALE, *(t.decimal[1] for t in types)))


def series(types: tuple[Type, ...]) -> Type:
    """Returns the type of the numbers of generate_series(): the first has the scale of the argument, the others may have more digits."""
    return unscaled(largest_scale(types))


def divisor(types: tuple[Type, ...]) -> str:
    """Returns the type to which Spark casts a divisor, so that the division rounds once, to scale 16.

    Spark computes 39 digits, then rounds to a scale that depends on both types. For DECIMAL(38, s) /
    DECIMAL(33 - s, r) with r ≥ s the scale is 16 (DecimalType.bounded of 38 and 34 + s digits).
    """
    scale0, scale1 = (t.decimal[1] for t in types)
    digits, scale = 33 - scale0, max(scale0, scale1)
    if digits - scale < DIVISOR_DIGITS_MIN:
        raise FeatureNotSupported(
            f"division of numerics with scales {scale0} and {scale1} in a view is not supported",
            hint="Cast the dividend to fewer digits after the decimal point, such as numeric(38,4).",
        )
    return f"DECIMAL({digits},{scale})"


@_general_if_any_is
def same_scale(types: tuple[Type, ...]) -> Type:
    return sized(*types[0].decimal)


def trimmed(types: tuple[Type, ...]) -> Type:
    return unscaled(same_scale(types))


def rounded(types: tuple[Type, ...]) -> Type:
    return rounded_to(types[0], 0)


def rounded_to(type: Type, digits: int | None) -> Type:
    """Returns the result type of round() and trunc() with a number of digits after the decimal point, None if it is not constant."""
    if type.general or (may_be_general() and (digits is None or digits > NUMERIC_PRECISION)):
        return GENERAL
    precision, scale = type.decimal
    if digits is None:
        return numeric(scale)
    if digits < 0:
        return numeric(0)
    digits = min(digits, NUMERIC_PRECISION)
    return _sized(precision - scale + 1 + digits, digits)


@_general_if_any_is
def whole(types: tuple[Type, ...]) -> Type:
    return numeric(0)


def factorial(types: tuple[Type, ...]) -> Type:
    return GENERAL if elements_may_be_general() else whole(types)


def integer(types: tuple[Type, ...]) -> Type:
    """Returns the numeric that an integer is cast to."""
    return sized(DIGITS.get(types[0].name, NUMERIC_PRECISION), 0)


def always_general(types: tuple[Type, ...]) -> Type:
    return GENERAL


def of_digits(before: int, scale: int) -> Callable[[tuple[Type, ...]], Type]:
    """Returns the result type of a function whose results have at most so many digits before the decimal point, and this scale."""
    return lambda types: sized(before + scale, scale) if may_be_general() else numeric(scale)
