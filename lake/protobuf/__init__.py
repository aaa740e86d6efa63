"""Messages of Protobuf as values, from what describes them: the text of `.proto` files, or a descriptor set.

    text ──► text.parsed ───────────┐
                                    ├──► File ──► linked: names of types stand for types ──► Schema
    bytes ──► descriptors.described ┘

What decoding needs is kept: names, numbers, types, presence. Options, services, extensions and comments are passed over. Editions are
refused by name.

Source: Protocol Buffers, "Language Guide (proto 2)", "Language Guide (proto 3)", "descriptor.proto", "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lake.errors import FeatureNotSupported, InvalidParameterValue

SCALARS = (
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
)
MESSAGE, ENUM, GROUP = "message", "enum", "group"
NESTING_MAX = 100  # of messages in messages, and of their definitions: as in Google's own libraries


@dataclass(frozen=True, slots=True)
class Field:
    """`type`: a scalar's name, or message, enum or group, and then `of` names it. `presence`: whether it tells that it was not sent."""

    number: int
    name: str
    type: str
    of: str = ""
    repeated: bool = False
    required: bool = False
    presence: bool = False
    oneof: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """`name` with its package and the messages around it. `nested`: the messages in it, in the order in which they are defined."""

    name: str
    fields: tuple[Field, ...]
    nested: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    is_entry: bool = False  # a map's key and value


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    values: tuple[tuple[str, int], ...]  # aliases have the same number


@dataclass(frozen=True, slots=True)
class File:
    messages: tuple[Message, ...]
    enums: tuple[Enum, ...]
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """All types of some files by their full names."""

    messages: dict[str, Message]
    enums: dict[str, Enum]


def indexes(file: File, name: str) -> list[int] | None:
    """Where a message stands among those of a file: its number, or those of the messages around it and its own. None if it is not there."""

    def within(messages: tuple[Message, ...]) -> list[int] | None:
        for i, message in enumerate(messages):
            if message.name == name:
                return [i]
            if (rest := within(message.nested)) is not None:
                return [i, *rest]
        return None

    return within(file.messages)


def linked(files: Iterable[File]) -> Schema:
    """Types with each other; 22023 if one is named and not there."""
    from lake.protobuf.known import FILE

    given = [*files, FILE]
    messages = {m.name: m for f in given for m in _all(f.messages)}
    enums = {e.name: e for f in given for e in (*f.enums, *(e for m in _all(f.messages) for e in m.enums))}

    def typed(field: Field, scope: str) -> Field:
        if not field.of:
            return field
        for name in _candidates(field.of, scope):
            if name in messages:
                return replace(field, of=name, type=field.type if field.type == GROUP else MESSAGE, presence=not field.repeated)
            if name in enums:
                return replace(field, of=name, type=ENUM)
        raise InvalidParameterValue(f'the Protobuf schema has no type "{field.of}"', detail=f'Field "{field.name}" of {scope} is of it.')

    return Schema({n: replace(m, fields=tuple(typed(f, n) for f in m.fields)) for n, m in messages.items()}, enums)


def _all(messages: tuple[Message, ...]) -> Iterator[Message]:
    for message in messages:
        yield message
        yield from _all(message.nested)


def _candidates(name: str, scope: str) -> Iterator[str]:
    """What a name may mean: the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    parts = scope.split(".")
    for n in range(len(parts), -1, -1):
        yield ".".join([*parts[:n], name])


def check_syntax(syntax: str) -> None:
    """0A000 for editions."""
    if syntax not in ("proto2", "proto3"):
        raise FeatureNotSupported(f'Protobuf of syntax "{syntax}" is not supported', hint="Use proto2 or proto3.")
