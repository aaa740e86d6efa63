"""The literals that quoted texts stand for."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import NumericValueOutOfRange, TailgateError
from tailgate.lake.types import Type
from tailgate.sql.binder.types.dimensions import literal_of
from tailgate.sql.numeric_types import keeps_general, of_literal
from tailgate.sql.plan import Literal
from tailgate.sql.time_zones import style
from tailgate.values.codec.codec import Value
from tailgate.values.numbers import numerics
from tailgate.values.registry import read_text


def literal(text: str, type: Type, position: int | None = None) -> Literal:
    """Returns the literal of a text; a numeric without modifiers has the scale of its text. Errors have the position."""
    try:
        if type.name == "numeric" and not type.is_array and not type.modifiers:
            return _numeric(text, type, position)
        value: Value = read_text(text, replace(type, multidimensional=type.is_array), style())
        if type.is_array and not type.multidimensional:
            return literal_of(value, type, position)
    except TailgateError as error:
        # PostgreSQL rounds to the precision and scale of a type later, but to those of an attribute when it reads the row
        if type.composite is not None or not (isinstance(error, NumericValueOutOfRange) and error.detail):
            error.position = position if error.position is None else error.position
        raise
    return Literal(value, type, position)


def _numeric(text: str, type: Type, position: int | None) -> Literal:
    number = numerics.general(text) if keeps_general() else numerics.exact(text)
    type = type if type.general else of_literal(number)
    return Literal(number if type.general else numerics.scaled(number, *type.decimal), type, position)


def numeric_of(text: str) -> Type:
    """Returns the type of a number's text, with the digits that are written."""
    return of_literal(numerics.exact(text))
