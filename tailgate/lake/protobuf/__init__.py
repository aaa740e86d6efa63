"""Protobuf schemas as values, from the text of `.proto` files or from a descriptor set.

    text ──► text.parsed ───────────┐
                                    ├──► File ──► linked: names of types are resolved ──► Schema
    bytes ──► descriptors.described ┘

Only what decoding needs is kept: names, numbers, types, presence. Options, services, extensions and
comments are skipped. Editions are refused with an error.

Source: Protocol Buffers, "Language Guide (proto 2)", "Language Guide (proto 3)", "descriptor.proto", "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue

SCALARS = (
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
)
MESSAGE, ENUM, GROUP = "message", "enum", "group"
NESTING_MAX = 100  # depth of messages and of their definitions, as in Google's libraries


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    `type`: a scalar's name, or message, enum or group; then `of` is the name of that type. `presence`:
    whether a reader can tell that the field was not set.
    """

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
    """A message type. `name` includes the package and the enclosing messages. `nested`: its inner messages, in order."""

    name: str
    fields: tuple[Field, ...]
    nested: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    is_entry: bool = False  # whether this is the implicit type of a map's entries


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum type. `name` includes the package and the enclosing messages."""

    name: str
    values: tuple[tuple[str, int], ...]  # aliases repeat a number


@dataclass(frozen=True, slots=True)
class File:
    """The types that one `.proto` file defines, and the names of the files that it imports."""

    messages: tuple[Message, ...]
    enums: tuple[Enum, ...]
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """All types of some files, by full name."""

    messages: dict[str, Message]
    enums: dict[str, Enum]


def indexes(file: File, name: str) -> list[int] | None:
    """Returns the path of indexes to a message in a file, outermost first; None if the file does not have it."""

    def within(messages: tuple[Message, ...]) -> list[int] | None:
        for i, message in enumerate(messages):
            if message.name == name:
                return [i]
            if (rest := within(message.nested)) is not None:
                return [i, *rest]
        return None

    return within(file.messages)


def linked(files: Iterable[File]) -> Schema:
    """Resolves the names of types in some files. Raises 22023 if a type does not exist."""
    from tailgate.lake.protobuf.known import FILE

    all_files = [*files, FILE]
    messages = {m.name: m for f in all_files for m in _all(f.messages)}
    enums = {e.name: e for f in all_files for e in (*f.enums, *(e for m in _all(f.messages) for e in m.enums))}

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
    """Yields the full names that a name may refer to, innermost scope first."""
    if name.startswith("."):
        yield name[1:]
        return
    parts = scope.split(".")
    for n in range(len(parts), -1, -1):
        yield ".".join([*parts[:n], name])


def check_syntax(syntax: str) -> None:
    """Raises 0A000 for editions."""
    if syntax not in ("proto2", "proto3"):
        raise FeatureNotSupported(f'Protobuf of syntax "{syntax}" is not supported', hint="Use proto2 or proto3.")
