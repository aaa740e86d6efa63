"""The parts of statements that the pages of docs/sql must show, derived from the classes of `sql.statements`.

    Statement ──► its classes and those of their fields ──► a word for each: class | field without default
                                                            | value of a Literal
    examples ──► parse ──► the words that they contain

Each new statement, field and Literal value therefore needs an example.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, Union

from tailgate.sql.statements import (
    SHOWS,
    Empty,
    Statement,
    definitions,
    kafka_statements,
    queries,
    session_statements,
    statement,
    tables,
    values,
    writes,
)
from tailgate.sql.statements import types as type_statements

MODULES = (queries, definitions, type_statements, statement, kafka_statements, session_statements, values, writes)
_NAMES = {name: value for module in (*MODULES, tables) for name, value in vars(module).items()}
_VALUES = {("Show", "what"): SHOWS}  # fields whose values are not in their type


def required_words() -> set[str]:
    words: set[str] = set()
    for kind in _classes(Statement, set()):
        words.add(kind.__name__)
        hints = _hints(kind)
        for field in _fields(kind):
            choices = _VALUES.get((kind.__name__, field.name)) or _literals(hints[field.name])
            words |= {_word(kind, field, choice) for choice in choices}
            if not choices and not _missing(field):
                words.add(f"{kind.__name__}.{field.name}")
    return words - {Empty.__name__}


def shown(value: Any) -> set[str]:
    """Returns the words that a statement, or a part of one, shows."""
    if isinstance(value, tuple):
        return set().union(*map(shown, value))
    kind = type(value)
    if not _ours(kind):
        return set()
    words = {kind.__name__}
    for field in _fields(kind):
        part = getattr(value, field.name)
        words |= shown(part) | {_word(kind, field, part)}
        if not _missing(field) and part != _default(field):
            words.add(f"{kind.__name__}.{field.name}")
    return words


def _ours(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and kind.__module__ in {m.__name__ for m in MODULES}


def _word(kind: type, field: dataclasses.Field[Any], choice: object) -> str:
    return f"{kind.__name__}.{field.name} = {choice!r}"


def _fields(kind: type) -> Iterator[dataclasses.Field[Any]]:
    """Yields the fields that are compared, that is, no positions and no trees of queries."""
    return (f for f in dataclasses.fields(kind) if f.compare)


def _missing(field: dataclasses.Field[Any]) -> bool:
    """Returns whether the field has no default. Every example of the class then shows it."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, localns=_NAMES)


def _classes(hint: Any, visited: set[type]) -> set[type]:
    if isinstance(hint, type) and _ours(hint) and hint not in visited:
        visited.add(hint)
        for inner in _hints(hint).values():
            _classes(inner, visited)
    for inner in typing.get_args(hint):
        _classes(inner, visited)
    return visited


def _literals(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return tuple(value for inner in typing.get_args(hint) for value in _literals(inner))
    return ()
