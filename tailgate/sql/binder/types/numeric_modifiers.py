"""Precision and scale of declared numerics."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tailgate.lake.types import Type
from tailgate.sql.functions.general import templates
from tailgate.sql.plan import Call, Literal, Scalar
from tailgate.values.numbers import numerics


def limited(scalar: Scalar, target: Type) -> Scalar:
    """Rounds and checks a general numeric by the target's modifiers, unless it has them already."""
    if not target.modifiers or scalar.type == target:
        return scalar
    if isinstance(scalar, Literal):
        value = numerics.limited(scalar.value, *target.modifiers) if isinstance(scalar.value, Decimal) else scalar.value
        return replace(scalar, value=value, type=target)
    return Call(templates.limited(target), (scalar,), target)


def has_room(literal: Literal, target: Type) -> bool:
    """Returns whether the value of a literal is a value of this numeric, too, with the same scale."""
    return (
        isinstance(literal.value, Decimal)
        and target.name == "numeric"
        and literal.type.decimal[1] == target.decimal[1]
        and literal.type.decimal[0] <= target.decimal[0]
    )
