"""The stored form of the catalog: JSON to values and back.

    entry of the log, catalog/<n> ── decode ──► Item, Role, Schema, Change, Catalog ── encode ──► the same JSON

The form of a record follows from the types of its dataclass: an object with a member for each field. A field that equals its
default is omitted, unless its metadata says `always` (`lake.catalog.formats.option`). Members that no field corresponds to come
from a newer version of Tailgate: they are kept in `unknown` and written back. The options of an item, which are the fields of
its class, are in the member `options`.

An item, a format or another tagged value of an unknown kind raises 0A000: this version cannot treat it correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tailgate.lake import types
from tailgate.lake.catalog.catalog import Catalog, Change
from tailgate.lake.catalog.formats import Backfilled, ConnectionSettings, DeclaredColumn, Include, Record
from tailgate.lake.catalog.item_fields import ItemFields
from tailgate.lake.catalog.items import Item
from tailgate.lake.catalog.roles import Access, Role
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import FeatureNotSupported

Value = TypeVar("Value")
Code = Callable[[Any], Any]

# members of an item's object outside of `options`, in the order in which they are written
COMMON = (
    "id",
    "kind",
    "name",
    "columns",
    "key",
    "stored",
    "errors",
    "depends",
    "sql",
    "query",
    "options",
    "ready",
    "owner",
    "replaces",
    "schema",
)
KINDS: Mapping[str, type[ItemFields]] = {kind.kind: kind for kind in get_args(Item)}


def encode(value: Any) -> Any:
    """Returns the JSON form of a record or of another value of the catalog."""
    return _coder(type(value)).encode(value)


def decode(kind: type[Value], data: Any) -> Value:
    """Returns the value of this type from its JSON form."""
    return cast(Value, _coder(kind).decode(data))


def encode_settings(settings: ConnectionSettings) -> dict[str, Any]:
    """Returns the JSON form of the settings of a connection."""
    return cast("dict[str, Any]", _coder(ConnectionSettings).encode(settings))


def decode_settings(data: Mapping[str, Any]) -> ConnectionSettings:
    """Returns the settings of a connection from their JSON form."""
    return cast(ConnectionSettings, _coder(ConnectionSettings).decode(data))


def encode_change(change: Change) -> dict[str, Any]:
    """Returns the JSON form of a change of the catalog."""
    others = {
        "put_roles": list(map(encode, change.put_roles)),
        "drop_roles": list(change.drop_roles),
        "put_schemas": list(map(encode, change.put_schemas)),
        "drop_schemas": list(change.drop_schemas),
        "put_access": list(map(encode, change.put_access)),
    }
    return {
        "put": list(map(encode_item, change.put)),
        "drop": list(change.drop),
        **{name: value for name, value in others.items() if value},
    }


def decode_change(data: Mapping[str, Any]) -> Change:
    """Returns a change of the catalog from its JSON form."""
    return Change(
        tuple(map(decode_item, data["put"])),
        tuple(data["drop"]),
        tuple(decode(Role, role) for role in data.get("put_roles", ())),
        tuple(data.get("drop_roles", ())),
        tuple(decode(Schema, schema) for schema in data.get("put_schemas", ())),
        tuple(data.get("drop_schemas", ())),
        tuple(decode(Access, access) for access in data.get("put_access", ())),
    )


def encode_catalog(catalog: Catalog) -> dict[str, Any]:
    """Returns the JSON form of a catalog."""
    roles = {"roles": list(map(encode, catalog.roles.values()))} if catalog.roles else {}
    schemas = {"schemas": list(map(encode, catalog.schemas.values()))} if catalog.schemas else {}
    queries = {"next_query": catalog.next_query} if catalog.next_query else {}
    access = {"access": list(map(encode, catalog.access.values()))} if catalog.access else {}
    return {"items": list(map(encode_item, catalog.items.values())), "next_id": catalog.next_id, **queries, **roles, **schemas, **access}


def decode_catalog(data: Mapping[str, Any]) -> Catalog:
    """Returns a catalog from its JSON form."""
    items = map(decode_item, data["items"])
    roles = (decode(Role, role) for role in data.get("roles", ()))
    schemas = (decode(Schema, schema) for schema in data.get("schemas", ()))
    access = (decode(Access, each) for each in data.get("access", ()))
    return Catalog(
        {i.id: i for i in items},
        data["next_id"],
        {r.id: r for r in roles},
        {s.id: s for s in schemas},
        data.get("next_query", 0),
        access={a.id: a for a in access},
    ).with_access()


# ---- items -----------------------------------------------------------------------------------------------------------------------


def encode_item(item: Item) -> dict[str, Any]:
    """Returns the JSON form of an item."""
    common, options = _MEMBERS[type(item)]
    out: dict[str, Any] = dict.fromkeys(COMMON)
    for member in common:
        out[member.name] = member.code.encode(getattr(item, member.attribute))
    out["kind"] = item.kind
    out["options"] = {**_encode_members(item, options), **item.unknown_options}
    return {**out, **item.unknown}


def decode_item(data: Mapping[str, Any]) -> Item:
    """Returns an item from its JSON form. Raises 0A000 for an unknown kind."""
    kind = KINDS.get(data["kind"])
    if kind is None:
        raise _newer(f'the catalog has an object of kind "{data["kind"]}"')
    common, options = _MEMBERS[kind]
    values = _decode_members(data, common)
    values |= _decode_members(data.get("options", {}), options)
    values["unknown"] = {name: value for name, value in data.items() if name not in COMMON}
    values["unknown_options"] = _others(data.get("options", {}), options)
    return cast(Item, kind(**values))


def _members(kind: type[ItemFields]) -> tuple[tuple[_Member, ...], tuple[_Member, ...]]:
    """Returns the members of an item's object, and those of its options."""
    members = _record_members(kind)
    common = {f.name for f in fields(ItemFields)} - {"comments", "storage"}
    return (
        tuple(m for m in members if m.attribute in common and not m.attribute.startswith("unknown")),
        tuple(m for m in members if m.attribute not in common),
    )


def _newer(what: str) -> FeatureNotSupported:
    """Returns the error for something that only a newer version can have written."""
    return FeatureNotSupported(
        f"{what}, which this version does not know", hint="A newer version of Tailgate has written to this lake; use that one."
    )


# ---- records ---------------------------------------------------------------------------------------------------------------------


class _Coder(NamedTuple):
    """The two directions for the values of one type."""

    encode: Code
    decode: Code


class _Member(NamedTuple):
    """A field of a record. `name`: its name in JSON. `required`: whether an object without it is not valid."""

    attribute: str
    name: str
    code: _Coder
    default: Callable[[], Any]
    always: bool
    required: bool


def _record_members(kind: type[Any]) -> tuple[_Member, ...]:
    hints = get_type_hints(kind)
    return tuple(_member(f, hints[f.name]) for f in fields(kind))


def _member(field: Field[Any], hint: Any) -> _Member:
    required = field.default is MISSING and field.default_factory is MISSING
    default = field.default_factory if field.default_factory is not MISSING else lambda: field.default
    name = field.metadata.get("json") or field.name
    return _Member(field.name, name, _coder(hint), default, field.metadata.get("always", False) or required, required)


def _encode_members(record: Any, members: tuple[_Member, ...]) -> dict[str, Any]:
    out = {}
    for member in members:
        value = getattr(record, member.attribute)
        if member.always or value != member.default():
            out[member.name] = member.code.encode(value)
    return out


def _decode_members(data: Mapping[str, Any], members: tuple[_Member, ...]) -> dict[str, Any]:
    return {m.attribute: m.code.decode(data[m.name]) for m in members if m.required or m.name in data}


def _others(data: Mapping[str, Any], members: tuple[_Member, ...]) -> dict[str, Any]:
    """Returns what no member corresponds to."""
    member_names = {m.name for m in members}
    return {name: value for name, value in data.items() if name not in member_names}


def _record_coder(kind: type[Any]) -> _Coder:
    """Returns the coder of a record; its object also has the tag `type` if the class has one."""
    members = tuple(m for m in _record_members(kind) if m.attribute != "unknown")
    tag = {"type": kind.type} if _tag(kind) else {}

    def encoded(record: Any) -> dict[str, Any]:
        return {**tag, **_encode_members(record, members), **record.unknown}

    def decoded(data: Mapping[str, Any]) -> Any:
        others = {name: value for name, value in _others(data, members).items() if name not in tag}
        return kind(**_decode_members(data, members), unknown=others)

    return _Coder(encoded, decoded)


def _tag(kind: type[Any]) -> str | None:
    """Returns the tag that distinguishes a record from others of its union, or None."""
    return None if any(f.name == "type" for f in fields(kind)) else getattr(kind, "type", None)


# ---- types -----------------------------------------------------------------------------------------------------------------------


def _coder(hint: Any) -> _Coder:
    """Returns the coder for the values of a type annotation."""
    if hint not in _CODERS:
        _CODERS[hint] = _new_coder(hint)
    return _CODERS[hint]


def _new_coder(hint: Any) -> _Coder:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union(tuple(a for a in arguments if a is not NoneType), optional=NoneType in arguments)
    if origin is tuple and arguments[-1] is ...:
        of = _coder(arguments[0])
        return _Coder(lambda value: [of.encode(v) for v in value], lambda data: tuple(of.decode(v) for v in data))
    if origin is tuple:
        parts = tuple(map(_coder, arguments))
        return _Coder(
            lambda value: [c.encode(v) for c, v in zip(parts, value, strict=True)],
            lambda data: tuple(c.decode(v) for c, v in zip(parts, data, strict=True)),
        )
    if origin is frozenset:
        return _Coder(sorted, frozenset)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, of = arguments[0], _coder(arguments[1])
        return _Coder(
            lambda value: {str(k): of.encode(v) for k, v in value.items()}, lambda data: {key(k): of.decode(v) for k, v in data.items()}
        )
    if isinstance(hint, type) and is_dataclass(hint) and issubclass(hint, Record):
        return _record_coder(hint)
    if hint in (int, str, bool, Any) or origin is Literal:
        return UNCHANGED
    raise TypeError(f"values of type {hint} have no JSON form")


def _union(kinds: tuple[Any, ...], *, optional: bool) -> _Coder:
    """Returns the coder for a union: of records, which a tag or their required members distinguish, and of JSON's own values."""
    records = tuple(k for k in kinds if isinstance(k, type) and is_dataclass(k))
    if not records and len(kinds) == 1:
        of = _coder(kinds[0])
        return _Coder(lambda value: None if value is None else of.encode(value), lambda data: None if data is None else of.decode(data))

    def encoded(value: Any) -> Any:
        return _coder(type(value)).encode(value) if is_dataclass(value) else value

    def decoded(data: Any) -> Any:
        if (data is None and optional) or not isinstance(data, Mapping):
            return data
        return _coder(_chosen(records, data)).decode(data)

    return _Coder(encoded, decoded)


def _chosen(records: tuple[type[Any], ...], data: Mapping[str, Any]) -> type[Any]:
    for record in records:
        tag = _tag(record)
        if data.get("type") == tag if tag else all(m.name in data for m in _record_members(record) if m.required):
            return record
    raise _newer(f'the catalog has a value of type "{data.get("type")}"')


UNCHANGED = _Coder(lambda value: value, lambda data: data)


def _encode_include(include: Include) -> list[Any]:
    """Returns the fields in order, without those at the end that have their defaults."""
    fields = [include.kind, include.name, include.header, include.bytes, include.column, include.format]
    length = max(4 if include.kind == "header" else 2, *(i + 1 for i, value in enumerate(fields) if value))
    return fields[:length]


def _encode_declared(column: DeclaredColumn) -> dict[str, Any]:
    precision = {} if column.precision is None else {"precision": column.precision}
    return {**types.field_to_json(column.field), **precision, **column.unknown}


def _decode_declared(data: Mapping[str, Any]) -> DeclaredColumn:
    unknown = {name: value for name, value in data.items() if name not in ("name", "type", "nullable", "precision")}
    return DeclaredColumn(field=types.field_from_json(dict(data)), precision=data.get("precision"), unknown=unknown)


# by type annotation; at first those that do not follow from it
_CODERS: dict[Any, _Coder] = {
    types.Field: _Coder(types.field_to_json, types.field_from_json),
    types.Type: _Coder(lambda value: types.field_to_json(types.Field("", value)), lambda data: types.field_from_json(data).type),
    DeclaredColumn: _Coder(_encode_declared, _decode_declared),
    Include: _Coder(_encode_include, lambda data: Include(*data)),
    Backfilled: _Coder(lambda value: [dict(value.ends), value.done], lambda data: Backfilled(*data)),
}

# the members of the items of a class, and those of their options
_MEMBERS = {kind: _members(kind) for kind in KINDS.values()}
