"""Values of several expressions as values of their common type: of IN, CASE, and the constructors of arrays, maps and structures.

The type of the first value that is not NULL decides. Literals that are texts are values of other types, too.

Source: ksqlDB 0.29, documentation, "Type Coercion", section "Expression lists".
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.lake.errors import DatatypeMismatch
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_texts import text
from tailgate.sql.ksqldb.expressions import Expression, TypeName
from tailgate.sql.ksqldb.typed.constants import boolean_of, moment_of, number_of
from tailgate.sql.ksqldb.typed.values import Typed, coerced

MOMENTS = ("timestamp", "date", "time")


def of_one_type(values: Sequence[Typed], expressions: Sequence[Expression], position: int) -> tuple[list[Typed], TypeName]:
    """Returns the values of expressions as values of their common type, and the type; VARCHAR if all are NULL. Raises 42804 or 22007."""
    first = next((v.type for v in values if v.type != types.UNKNOWN), types.VARCHAR)
    converted = [_literal(value, first, position) for value in values]
    type = first
    for value, expression in zip(converted, expressions, strict=True):
        joined = _joined(type, value.type)
        if joined is None:
            raise DatatypeMismatch(
                f"operator does not exist: {types.in_schema(type)} = {types.in_schema(value.type)} ({text(expression)})\n"
                "Hint: You might need to add explicit type casts.",
                position=position,
            )
        type = joined
    return [coerced(v, type) for v in converted], type


def _mismatch(type: TypeName, value: str, position: int) -> DatatypeMismatch:
    return DatatypeMismatch(f"invalid input syntax for type {types.in_schema(type)}: {value}", position=position)


def _literal(value: Typed, first: TypeName, position: int) -> Typed:
    """Returns a literal as a value of the kind of the first value. Other values stay as they are. Raises 42804 or 22007."""
    constant = value.constant
    if constant is None or value.type == first:
        return value
    if first == types.VARCHAR:
        shown = str(constant).lower() if isinstance(constant, bool) else str(constant)
        return Typed(quoted_text(shown), types.VARCHAR, constant=str(constant))
    if not isinstance(constant, str):
        return value
    converted: Typed | None = value
    if first.name in types.NUMBERS:
        converted = number_of(constant, position)
    elif first == types.BOOLEAN:
        converted = boolean_of(constant)
    elif first.name in MOMENTS:
        converted = moment_of(constant, first, position)
    if converted is None:
        raise _mismatch(first, f'"{constant}"', position)
    return converted


def _joined(one: TypeName, other: TypeName) -> TypeName | None:
    """Returns the type to which values of two types are cast, or None."""
    if types.UNKNOWN in (one, other):
        return other if one == types.UNKNOWN else one
    if one.name in types.NUMBERS and other.name in types.NUMBERS:
        return types.widest((one, other))
    if one.name != other.name:
        return None
    if one.name == "struct":
        of_fields = dict(zip(one.fields, one.arguments, strict=True))
        for name, type in zip(other.fields, other.arguments, strict=True):
            joined = _joined(of_fields.get(name, type), type)
            if joined is None:
                return None
            of_fields[name] = joined
        return TypeName("struct", arguments=tuple(of_fields.values()), fields=tuple(of_fields))
    inner = [_joined(a, b) for a, b in zip(one.arguments, other.arguments, strict=False)]
    return None if None in inner else TypeName(one.name, one.numbers, tuple(t for t in inner if t is not None))
