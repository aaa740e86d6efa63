"""CREATE TYPE … AS ENUM, and ALTER TYPE of an enum type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tailgate.lake.catalog.names import Name


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


EnumAction: TypeAlias = AddValue | RenameValue | NewOwner


@dataclass(frozen=True, slots=True)
class AlterEnum:
    """ALTER TYPE name {ADD VALUE … | RENAME VALUE … | OWNER TO …}."""

    name: Name
    action: EnumAction
