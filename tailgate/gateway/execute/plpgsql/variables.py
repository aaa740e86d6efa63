"""The variables of a running block, and the names by which statements find them.

Values are texts, as the output functions with default settings write them: every type has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import NullValueNotAllowed, ObjectNotInPrerequisiteState, ProgramLimitExceeded, UndefinedColumn
from tailgate.lake.types import Type
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.plpgsql.nodes import Reference

VALUE_CHARACTERS_MAX = 16 << 20  # of the text of one variable


@dataclass(slots=True)
class Variable:
    """A variable of one value, or a field of a record. `domain`: the name of its domain, which checks each value."""

    name: str
    type: Type
    value: str | None = None
    not_null: bool = False
    domain: str = ""

    def set(self, value: str | None) -> None:
        """Raises 22004 for NULL if the variable is declared NOT NULL, and 54000 for a value that is too long."""
        if value is None and self.not_null:
            raise NullValueNotAllowed(f'null value cannot be assigned to variable "{self.name}" declared NOT NULL')
        if value is not None and len(value) > VALUE_CHARACTERS_MAX:
            raise ProgramLimitExceeded(
                f'the value of variable "{self.name}" is too long', hint=f"At most {VALUE_CHARACTERS_MAX} characters."
            )
        self.value = value


@dataclass(slots=True)
class Record:
    """A variable of a row. `fixed`: the row type is declared, so a row is cast to it.

    `fields`: None until a row is assigned; the first of several columns with the same name.
    """

    name: str
    fields: dict[str, Variable] | None = None
    fixed: bool = False

    def all(self) -> dict[str, Variable]:
        """Returns the fields. Raises 55000 if no row was assigned."""
        if self.fields is None:
            detail = "The tuple structure of a not-yet-assigned record is indeterminate."
            raise ObjectNotInPrerequisiteState(f'record "{self.name}" is not assigned yet', detail=detail)
        return self.fields


Named: TypeAlias = Variable | Record


@dataclass(slots=True)
class Scope:
    """The variables of a block or loop, in the scope around it."""

    label: str | None
    outer: Scope | None
    names: dict[str, Named] = field(default_factory=dict)

    def find(self, parts: Reference) -> tuple[Named, Reference] | None:
        """Returns the variable of a name, and the parts of the name behind that of the variable. None if no variable has it."""
        scope: Scope | None = self
        while scope is not None:
            names = parts
            if names[0] not in scope.names and names[0] == scope.label and len(names) > 1:
                names = names[1:]
            named = scope.names.get(names[0])
            if named is not None and len(names) <= (2 if isinstance(named, Record) else 1):
                return named, names[1:]
            scope = scope.outer
        return None

    def may_name(self, words: frozenset[str]) -> bool:
        """Returns whether one of these words is the name of a variable."""
        scope: Scope | None = self
        while scope is not None:
            if not words.isdisjoint(scope.names):
                return True
            scope = scope.outer
        return False

    def variable(self, parts: Reference) -> Named:
        """Returns the variable or the field of a record that has a name. Raises 42703 for another field."""
        found = self.find(parts)
        assert found is not None, parts
        named, rest = found
        if not rest:
            return named
        assert isinstance(named, Record)
        if rest[0] not in named.all():
            raise no_field(named, rest[0])
        return named.all()[rest[0]]


def names_in(text: str) -> Reference:
    """Returns the words and quoted names in a text; those of a qualified name are its parts."""
    return tuple(token.value for token in tokens(text) if token.kind in ("word", "quoted"))


def catalog_name(type: str) -> Name | None:
    """Returns the name that the catalog may have for a type; None if the type has too many words."""
    parts = names_in(type)
    return Name(parts[-1], parts[0] if len(parts) > 1 else None) if len(parts) < 3 else None


def no_field(record: Record, name: str) -> UndefinedColumn:
    return UndefinedColumn(f'record "{record.name}" has no field "{name}"')
