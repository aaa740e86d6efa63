"""CREATE TYPE … AS ENUM, CREATE TYPE … AS (…), ALTER TYPE, CREATE DOMAIN and ALTER DOMAIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.types import Type
from tailgate.sql.statements.tables import AddConstraint, Check, DropConstraint, RenameConstraint, ValidateConstraint


@dataclass(frozen=True, slots=True)
class CreateEnum:
    """CREATE TYPE name AS ENUM ([label, …])."""

    name: Name
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddValue:
    """ADD VALUE [IF NOT EXISTS] label [{BEFORE | AFTER} neighbor]. `before`: whether the label comes before its neighbor."""

    label: str
    if_not_exists: bool = False
    neighbor: str | None = None
    before: bool = False


@dataclass(frozen=True, slots=True)
class RenameValue:
    """RENAME VALUE label TO new_label."""

    label: str
    new_label: str


@dataclass(frozen=True, slots=True)
class NewOwner:
    """OWNER TO role."""

    role: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a composite type."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class CreateComposite:
    """CREATE TYPE name AS (attribute type, …)."""

    name: Name
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class RenameAttribute:
    """RENAME ATTRIBUTE attribute TO new_name."""

    attribute: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AddAttribute:
    """ADD ATTRIBUTE attribute type."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class DropAttribute:
    """DROP ATTRIBUTE [IF EXISTS] attribute."""

    attribute: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetAttributeType:
    """ALTER ATTRIBUTE attribute [SET DATA] TYPE type."""

    attribute: Attribute


AttributeAction: TypeAlias = RenameAttribute | AddAttribute | DropAttribute | SetAttributeType


@dataclass(frozen=True, slots=True)
class AlterType:
    """ALTER TYPE name {ADD VALUE … | RENAME VALUE … | OWNER TO … | an action on attributes, …}."""

    name: Name
    action: AddValue | RenameValue | NewOwner | tuple[AttributeAction, ...]


# ---- domains


@dataclass(frozen=True, slots=True)
class CreateDomain:
    """CREATE DOMAIN name [AS] type [DEFAULT expression] [constraint …]. `default`: the expression as typed, or None."""

    name: Name
    type: Type
    default: str | None = None
    not_null: bool = False
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class SetDomainDefault:
    """{SET DEFAULT expression | DROP DEFAULT}. `default`: the expression as typed, or None."""

    default: str | None


@dataclass(frozen=True, slots=True)
class SetDomainNotNull:
    """{SET | DROP} NOT NULL."""

    not_null: bool


DomainAction: TypeAlias = (
    SetDomainDefault | SetDomainNotNull | AddConstraint | DropConstraint | ValidateConstraint | RenameConstraint | NewOwner
)


@dataclass(frozen=True, slots=True)
class AlterDomain:
    """ALTER DOMAIN name action."""

    name: Name
    action: DomainAction
