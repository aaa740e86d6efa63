"""Resolves the names of types in `.proto` files, which may refer to types of other files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tailgate.formats.protobuf.known import COMMON, FILE
from tailgate.formats.protobuf.schema import ENUM, GROUP, MESSAGE, Field, File, Message, Schema
from tailgate.lake.errors import InvalidParameterValue


def linked(files: Iterable[File]) -> Schema:
    """Resolves the names of types in some files. Raises 22023 if a type does not exist."""
    all_files = [FILE, *COMMON, *files]
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
        raise InvalidParameterValue(
            f'the Protobuf schema has no type "{field.of}"', detail=f'Field "{field.name}" of {scope} has this type.'
        )

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
