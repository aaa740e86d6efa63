"""Whether a scalar can fail on some row.

A condition that can fail must not be asked of rows which the query would not have asked it of: `a.kind = 'number' AND
b.word::int > 5` may not be cut in two and its second half moved below a join. So only what is listed here moves; what is not
listed is taken to fail.
"""

from __future__ import annotations

from sql.plan import Call, Parameter, Scalar
from sql.rewrite import walk

OPERATORS = frozenset({"=", "<>", "<", "<=", ">", ">=", "->", "->>", "?", "@>", "<@", "||"})
FUNCTIONS = frozenset(
    {"lower", "upper", "length", "char_length", "btrim", "ltrim", "rtrim", "trim", "concat", "reverse", "starts_with", "md5", "date_trunc"}
)

# types in the order in which a cast to a later one always has a result
WIDER = (("int2", "int4", "int8", "numeric"), ("int2", "int4", "int8", "float8"), ("float4", "float8"), ("date", "timestamp"))
TEXTS = ("text",)


def fallible(scalar: Scalar) -> bool:
    return any(_fails(part) for part in walk(scalar))


def _fails(scalar: Scalar) -> bool:
    """Of itself, its parts aside."""
    if isinstance(scalar, Parameter):
        return True
    if not isinstance(scalar, Call):
        return False
    function = scalar.function
    if function.kind == "cast":
        return not _widens(function.arguments[0], scalar)
    return function.name.partition(":")[0] not in (OPERATORS if function.kind in ("operator", "prefix") else FUNCTIONS)


def _widens(source: str, cast: Call) -> bool:
    target = cast.type
    if target.is_array or source.endswith("[]"):
        return False
    if target.name in TEXTS or (target.name == source and not target.modifiers):
        return True
    if target.name == "numeric" and target.modifiers:
        precision, scale = target.modifiers
        return precision - scale >= {"int2": 5, "int4": 10, "int8": 19}.get(source, 39)
    return any(source in order and target.name in order and order.index(source) < order.index(target.name) for order in WIDER)
