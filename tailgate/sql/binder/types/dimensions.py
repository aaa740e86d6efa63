"""Scalars that are arrays, as arrays of one dimension from 1 or of any dimensions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.sql.functions.multidimensional import templates
from tailgate.sql.numeric_types import is_maintained
from tailgate.sql.plan import Call, Literal, Scalar
from tailgate.values.composites import arrays, dimensions


def with_dimensions(scalar: Scalar) -> Scalar:
    """Returns an array as one of a multidimensional type."""
    if scalar.type.multidimensional:
        return scalar
    type = scalar.type.array(multidimensional=True)
    if isinstance(scalar, Literal):
        value = (scalar.value, dimensions.of_list(len(scalar.value))) if isinstance(scalar.value, tuple) else None
        return replace(scalar, value=value, type=type)
    return Call(templates.FROM_LIST, (scalar,), type)


def as_list(scalar: Scalar) -> Scalar:
    """Returns an array as one of one dimension from 1. Raises 0A000 for a literal with other dimensions."""
    if not scalar.type.multidimensional:
        return scalar
    type = scalar.type.array()
    if isinstance(scalar, Literal) and scalar.value is not None:
        try:
            return replace(scalar, value=arrays.as_list(scalar.value), type=type)
        except TailgateError as error:
            error.position = scalar.position
            raise
    return replace(scalar, type=type) if isinstance(scalar, Literal) else Call(templates.TO_LIST, (scalar,), type)


def elements_of(scalar: Scalar) -> Scalar:
    """Returns the elements of an array of any dimensions."""
    if not scalar.type.multidimensional:
        return scalar
    if isinstance(scalar, Literal):
        value = scalar.value[0] if isinstance(scalar.value, tuple) else None
        return replace(scalar, value=value, type=scalar.type.array())
    return Call(templates.ELEMENTS, (scalar,), scalar.type.array())


def literal_of(value: Any, type: Type, position: int | None) -> Literal:
    """Returns the literal of elements and dimensions. Its type is multidimensional only if the value needs it."""
    items, shape = value
    if dimensions.is_list(shape):
        return Literal(items, type.array(), position)
    return Literal(value, type.array(multidimensional=True), position)


def fills_list(operands: tuple[Scalar, ...]) -> bool:
    """Returns whether array_fill() in a view returns one dimension from 1, as its arguments tell. Sinks can send such a column."""
    match operands[1:]:
        case (Literal(value=(int() as size,)),) | (Literal(value=(int() as size,)), Literal(value=(1,))):
            return size >= 0 and is_maintained()
    return False
