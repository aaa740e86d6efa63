"""Polymorphic functions: anyelement, anyarray, anyenum, anycompatible, anycompatiblearray.

Before overload resolution, each polymorphic row of the catalogue becomes a row for the types of the
call.

Source: PostgreSQL 15, section "Polymorphic Types"; enforce_generic_type_consistency(),
select_common_type_from_oids() in parse_coerce.c.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.types import TEXT, UNKNOWN, Type
from tailgate.sql.binder.types.coercion import PREFERRED, catalogue_name, common_numeric, implicit, same
from tailgate.sql.functions.entry import Function

FAMILIES = ("anyelement", "anyarray", "anycompatible", "anycompatiblearray", "anyenum")


@dataclass(frozen=True)
class ConcreteResult:
    """The result type of a concrete row: `element`, or an array of it.

    A numeric has room for all arguments.
    """

    element: Type
    array: bool

    def __call__(self, types: tuple[Type, ...]) -> Type:
        element = self.element
        if element.name == "numeric":
            element = common_numeric([t.element for t in types if t.name == "numeric"] or [element])
        return element.array() if self.array else element


def is_undetermined(row: Function, types: tuple[Type, ...]) -> bool:
    """Returns whether a call fits a polymorphic row, but none of its arguments has a type that tells the element's."""

    def fits(name: str, type: Type) -> bool:
        return type == UNKNOWN or (name not in FAMILIES and (catalogue_name(type) == name or implicit(type, name)))

    return (
        len(row.arguments) == len(types)
        and any(name in ("anyelement", "anyarray") for name in row.arguments)
        and all(map(fits, row.arguments, types))
    )


def concrete(row: Function, types: tuple[Type, ...]) -> Function | None:
    """Replaces the polymorphic types of a row by concrete types.

    Returns None if the arguments do not fit them.
    """
    if any(a in ALL_RANGES for a in row.arguments):  # as the concrete rows of anyrange and anymultirange, which cast no other argument
        return row if all(t == UNKNOWN or catalogue_name(t) == a for t, a in zip(types, row.arguments, strict=False)) else None
    if not any(a in FAMILIES for a in row.arguments) or not (row.variadic or len(types) == len(row.arguments)):
        return row
    names = row.arguments + row.arguments[-1:] * (len(types) - len(row.arguments))
    if len(names) != len(types):
        return row
    elements: list[Type] = []
    for name, type in zip(names, types, strict=True):
        if type == UNKNOWN or name not in FAMILIES:
            continue
        if name.endswith("array") != type.is_array or (name == "anyenum" and type.enum is None):
            return None
        elements.append(type.element)
    if not elements:
        if row.name != "ARRAY":
            return None
        elements = [TEXT]
    loose = any(name.startswith("anycompatible") for name in names)
    element = elements[0]
    for type in elements[1:]:
        if same(type, element):
            continue
        if not loose or element.enum is not None or type.facts.category != element.facts.category:
            return None
        if element.name not in PREFERRED and implicit(element, type.name) and not implicit(type, element.name):
            element = type
    if element.name in ("varchar", "bpchar"):
        element = Type(element.name)
    argument_names = tuple(
        (element.name + "[]" if name.endswith("array") else element.name) if name in FAMILIES else name for name in names
    )
    result = row.result
    if result in FAMILIES:
        assert isinstance(result, str)
        result = ConcreteResult(element, result.endswith("array"))
    return replace(row, arguments=argument_names, result=result, variadic=False, unified=True)
