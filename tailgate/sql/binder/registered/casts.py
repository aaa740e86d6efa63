"""Binds casts to regclass and regtype. The name of an object is looked up when the query is bound, so it must be a constant.

Source: PostgreSQL 15, src/backend/utils/adt/regproc.c; src/backend/parser/parse_type.c.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Domain, Sequence
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, NumericValueOutOfRange, SyntaxError_, TailgateError, UndefinedTable
from tailgate.lake.keywords import quoted
from tailgate.lake.types import OID, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.sequence_calls import sequence_name
from tailgate.sql.binder.types.coercion import STRINGS, bare_type, cast
from tailgate.sql.binder.types.literals import literal
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.type_resolution import SYSTEM, named_type, unknown_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Cursor
from tailgate.sql.numeric_types import is_ad_hoc
from tailgate.sql.plan import Case, Literal, Scalar
from tailgate.values.strings.registered import FIRST_CREATED, NONE, REGISTERED, of_oid, stored

INTEGERS = ("int2", "int4", "int8", "oid")
OIDS = 2**32
HINT = "A name or an oid that is a constant can be cast."


def is_registered(node: exp.DataType) -> bool:
    """Returns whether a parsed type name is regclass or regtype."""
    return str(node.args["kind"]) in REGISTERED and node.meta.get("schema", "") in ("", SYSTEM) and not node.args.get("values")


def bind_registered(binder: ExpressionBinder, node: exp.Cast) -> Scalar:
    """Binds a cast to regclass or regtype. Raises 42704, 42P01, 3F000, 42846, 0A000."""
    type, at = Type(str(node.args["to"].args["kind"])), position(node)
    if not is_ad_hoc():
        raise FeatureNotSupported(f"type {type} is not supported in a definition", hint="Compare names as text.", position=at)
    return _cast(binder, binder.bind(node.this), type, position(node.this), at)


def _cast(binder: ExpressionBinder, value: Scalar, type: Type, of_value: int | None, at: int | None) -> Scalar:
    if isinstance(value, Case):
        branches = tuple((condition, _cast(binder, result, type, of_value, at)) for condition, result in value.branches)
        return Case(branches, _cast(binder, value.otherwise, type, of_value, at), type)
    if isinstance(value, Literal) and value.value is None:
        return Literal(None, type, at)
    is_text = value.type.name in (*STRINGS, "unknown") and not value.type.is_array
    if not isinstance(value, Literal) and (is_text or value.type.name in INTEGERS):
        raise FeatureNotSupported(f"casting {bare_type(value.type)} to {type} is not supported", hint=HINT, position=at)
    if isinstance(value, Literal) and isinstance(value.value, int) and value.type.name in INTEGERS:
        if value.type.name == "int8" and not 0 <= value.value < OIDS:
            raise NumericValueOutOfRange("OID out of range")
        return Literal(_of_oid(value.value % OIDS, type, binder.level.names.catalog), type, at)
    if isinstance(value, Literal) and is_text:
        try:
            return Literal(_of_text(str(value.value), type, binder.level.names.catalog), type, at)
        except TailgateError as error:
            error.position = of_value
            raise
    return cast(value, type, binder.parameters, at)


def _of_oid(oid: int, type: Type, catalog: Catalog) -> str:
    """Returns the stored form of an object with an oid."""
    if oid < FIRST_CREATED:
        return of_oid(oid, type)
    if type.name == "regclass":
        item = catalog.get(oid)
        return of_oid(oid, type) if item is None or not _is_class(item) else stored(oid, _shown(catalog.name_of(item)))
    actual = catalog.type_with(oid)
    domain = catalog.get(oid)
    if actual is None and isinstance(domain, Domain):
        return stored(oid, _shown(catalog.name_of(domain)))
    return of_oid(oid, type) if actual is None else stored(oid, str(actual))


def _of_text(text: str, type: Type, catalog: Catalog) -> str:
    """Returns the stored form of the object that a text names. Raises 42704, 42P01, 3F000, 42602, 42601."""
    if text == NONE or (text.isascii() and text.isdecimal()):
        return _of_oid(0 if text == NONE else int(str(literal(text, OID).value)), type, catalog)
    if type.name == "regtype":
        return _type_of(text, catalog)
    name = sequence_name(text)
    item = catalog.find(name)
    if item is None or not _is_class(item):
        if name.schema in (SYSTEM, "information_schema") or (name.schema is None and name.name.startswith("pg_")) or item is not None:
            raise FeatureNotSupported(f'"{name}" as regclass is not supported here', hint="Read its oid from pg_class.")
        catalog.check_schema(name)
        raise UndefinedTable(f'relation "{name}" does not exist')
    return stored(item.id, _shown(catalog.name_of(item)))


def _is_class(item: object) -> bool:
    return isinstance(item, Sequence) or bool(getattr(item, "is_relation", False))


def _shown(name: Name) -> str:
    return quoted(name.name) if name.schema is None else f"{quoted(name.schema)}.{quoted(name.name)}"


def _type_of(text: str, catalog: Catalog) -> str:
    """Returns the stored form of the type that a text names."""
    if not text.strip():
        raise SyntaxError_(f'invalid type name "{text}"')
    cursor = Cursor(text)
    node = type_name(cursor)
    cursor.finish()
    if node.args["kind"] in ("record", "unknown", *REGISTERED) and not node.args.get("values"):
        type = Type(str(node.args["kind"]))
        return stored(type.oid, str(type))
    type = named_type(node)
    if type.enum is not None:
        name = Name(type.enum.name, type.enum.schema or None)
        domain, actual = catalog.find_domain(name), catalog.find_type(name)
        if domain is not None and not type.is_array:
            return stored(domain.id, _shown(catalog.name_of(domain)))
        if actual is None:
            raise unknown_type(node)
        type = replace(actual, is_array=type.is_array)
    type = replace(type, modifiers=())
    return stored(type.oid, str(type))
