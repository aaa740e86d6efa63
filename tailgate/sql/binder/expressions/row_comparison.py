"""Compares two rows that are already bound, column by column."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.plan import And, Or, Scalar

STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}  # the operator for the first pair of columns that differ


def compare_rows(binder: ExpressionBinder, sign: str, left: list[Scalar], right: list[Scalar], at: int | None) -> Scalar:
    """Compares rows column by column. Raises 42601, 0A000, and the errors of the operators."""
    if len(left) != len(right):
        raise SyntaxError_("unequal number of entries in row expressions", position=at)
    if not left:
        raise FeatureNotSupported("cannot compare rows of zero length", position=at)
    if sign in ("=", "<>"):
        tests = tuple(binder.operate(sign, [a, b], at) for a, b in zip(left, right, strict=True))
        return tests[0] if len(tests) == 1 else And(tests) if sign == "=" else Or(tests)
    if sign not in STRICT and len(left) > 1:
        raise FeatureNotSupported(
            f"could not determine interpretation of row comparison operator {sign}",
            hint="Row comparison operators must be associated with btree operator families.",
            position=at,
        )
    *firsts, last = zip(left, right, strict=True)
    condition = binder.operate(sign, list(last), at)
    for a, b in reversed(firsts):
        condition = Or((binder.operate(STRICT[sign], [a, b], at), And((binder.operate("=", [a, b], at), condition))))
    return condition
