"""Checks that values of a type can be compared and sorted, and that equal values have one stored form."""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, UndefinedFunction
from tailgate.lake.types import Type
from tailgate.sql.functions.comparison import INCOMPARABLE
from tailgate.sql.plan.rows import is_row
from tailgate.sql.plan.sort_keys import EQUAL_FORMS

SEVERAL_FORMS = EQUAL_FORMS - {"bpchar"}  # equal texts of bpchar differ in trailing blanks only


def check_one_form(type: Type, clause: str, position: int | None) -> None:
    """Raises 0A000 for types whose equal values can have different stored forms.

    Examples are 1.0 and 1 in jsonb, numrange and nummultirange, and 24 hours and a day in interval.
    """
    if not type.leaves.isdisjoint(SEVERAL_FORMS):
        raise FeatureNotSupported(f"{clause} of type {type} is not supported", hint="Cast it to text.", position=position)


def require_equality(type: Type, position: int | None) -> None:
    """Raises 42883 for types without an operator `=`."""
    if incomparable := _incomparable(type, position):
        raise UndefinedFunction(f"could not identify an equality operator for type {incomparable}", position=position)


def require_order(type: Type, position: int | None) -> None:
    """Raises 42883 for types without an operator `<`."""
    if incomparable := _incomparable(type.element if type.name == "record" else type, position):
        message = f"could not identify an ordering operator for type {incomparable}"
        raise UndefinedFunction(message, hint="Use an explicit ordering operator or modify the query.", position=position)


def _incomparable(type: Type, position: int | None) -> Type | None:
    """Returns the type of a value in a type that has no comparisons, or None. Raises 0A000 for arrays of rows."""
    if type.name == "record" and type.is_array:
        raise FeatureNotSupported(
            "comparing arrays of rows is not supported", hint="Compare the rows one by one, or as text.", position=position
        )
    if is_row(type):
        return next((t for f in type.fields if (t := _incomparable(f.type, position))), None)
    return type if type.name in INCOMPARABLE else None
