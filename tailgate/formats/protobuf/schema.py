"""Protobuf schemas as values: messages, their fields, enums, and the files that define them."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.errors import FeatureNotSupported

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


def check_syntax(syntax: str) -> None:
    """Raises 0A000 for editions."""
    if syntax not in ("proto2", "proto3"):
        raise FeatureNotSupported(f'Protobuf of syntax "{syntax}" is not supported', hint="Use proto2 or proto3.")
