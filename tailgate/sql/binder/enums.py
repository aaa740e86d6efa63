"""Binds the names of the types that users create, and the functions of labels: enum_first, enum_last and enum_range.

Source: PostgreSQL 15, src/backend/utils/adt/enum.c.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog.custom_types import id_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.types import UNKNOWN, DomainType, Type
from tailgate.sql.authorization import TYPE, Demand
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.domains import domain_type
from tailgate.sql.binder.types.coercion import coerce, same
from tailgate.sql.binder.types.enums import range_of
from tailgate.sql.binder.types.overloads import function
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.type_resolution import named_type, unknown_type
from tailgate.sql.plan import Call, Literal, Scalar

FUNCTIONS = {"enum_first": (1,), "enum_last": (1,), "enum_range": (1, 2)}  # with the numbers of arguments


def cast_type(binder: ExpressionBinder, node: exp.DataType) -> tuple[Type, DomainType | None]:
    """Returns the type of a cast, and the domain whose base type it is, if any. Raises 42704 if it does not exist, 0A000."""
    type = named_type(node)
    if type.enum is None:
        return type, None
    name, at = Name(type.enum.name, type.enum.schema or None), position(node)
    domain = domain_type(binder, name, at)
    if domain is not None and type.is_array:
        raise FeatureNotSupported("arrays of domains are not supported", hint="Use a domain over an array.", position=at)
    if domain is not None:
        return domain
    actual = user_type(binder, name, at)
    if actual is None:
        raise unknown_type(node)
    return replace(actual, is_array=type.is_array, multidimensional=type.multidimensional), None


def user_type(binder: ExpressionBinder, name: Name, at: int | None) -> Type | None:
    """Returns the enum or composite type with this name, or None. Records that the text names it."""
    names = binder.level.names
    type = names.catalog.find_type(name)
    if type is None:
        return None
    id = id_of(type)
    if id not in names.used:
        names.used.append(id)
    if at is not None:
        names.places[at] = id
    names.demand(Demand(TYPE, id, names.readers))
    return type


def bind_enum_function(binder: ExpressionBinder, name: str, operands: list[Scalar], at: int | None) -> Scalar:
    """Binds a function of labels. Its value depends only on the type, except for the bounds of a range. Raises 42883, 55000."""
    types = tuple(operand.type for operand in operands)
    type = next((t for t in types if t.enum is not None), None)
    if type is None or len(types) not in FUNCTIONS[name] or not all(t == UNKNOWN or same(t, type) for t in types) or type.is_array:
        return binder.call(function(name, types, at), operands, at)
    numbers = tuple(number for number, _ in type.labels)
    if name == "enum_range" and len(operands) == 1:
        return Literal(numbers, type.array(), at)
    if name == "enum_range":
        bounds = (coerce(operand, type, binder.parameters) for operand in operands)
        return Call(range_of(numbers), tuple(bound for bound in bounds if bound is not None), type.array(), at)
    if not numbers:
        raise ObjectNotInPrerequisiteState(f"enum {type} contains no values")
    return Literal(numbers[0 if name == "enum_first" else -1], type, at)
