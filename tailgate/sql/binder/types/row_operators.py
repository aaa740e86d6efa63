"""Comparison operators of rows as values.

Fields that are NULL are equal, and greater than all others, unlike in the comparison of two ROW(…).

Source: PostgreSQL 15, record_eq() and record_cmp() in src/backend/utils/adt/rowtypes.c.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import DatatypeMismatch
from tailgate.lake.types import BOOL, UNKNOWN
from tailgate.sql.binder.types.coercion import bare_type, coerce, common, same
from tailgate.sql.binder.types.comparability import require_equality
from tailgate.sql.binder.types.overloads import operator
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.plan import Call, Literal, Scalar
from tailgate.sql.plan.rows import COMPARISONS, is_row
from tailgate.sql.plan.sort_keys import sort_key


def compare(sign: str, operands: list[Scalar], parameters: Parameters, at: int | None) -> Scalar:
    """Compares two values, of which one is a row. Raises 42804, 42883."""
    row = next(s for s in operands if is_row(s.type))
    record = replace(row.type, composite=None)  # as PostgreSQL, which has operators of record alone
    left, right = (coerce(s, record, parameters) if s.type == UNKNOWN else s for s in operands)
    if left is None or right is None or not is_row(left.type) or not is_row(right.type):
        operator(sign, tuple(s.type for s in operands), at)  # raises the error
        raise AssertionError(sign)
    types = left.type, right.type
    if len(types[0].fields) != len(types[1].fields):
        raise DatatypeMismatch("cannot compare record types with different numbers of columns", position=at)
    for n, (a, b) in enumerate(zip(types[0].fields, types[1].fields, strict=True), 1):
        if not same(a.type, b.type):
            shown = f"{bare_type(a.type)} and {bare_type(b.type)}"
            raise DatatypeMismatch(f"cannot compare dissimilar column types {shown} at record column {n}", position=at)
    require_equality(types[0], at)
    type = common([Literal(None, replace(s.type, composite=None)) for s in (left, right)], [at, at], "comparison")
    keys = [sort_key(cast) for s in (left, right) if (cast := coerce(s, type, parameters)) is not None]
    return Call(COMPARISONS[sign], tuple(keys), BOOL, at)
