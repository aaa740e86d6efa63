"""The types that users create: custom types of ksqlDB, and enum types.

A column has its enum type with the labels (`Type.enum`), so that a value can be read and written without the catalog. A change of an
enum type changes the columns of this type in the same entry of the log (`with_enums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeVar

from tailgate.lake.catalog.formats import option
from tailgate.lake.catalog.item_fields import ItemFields, Namespace
from tailgate.lake.types import EnumType, Field, Type

AnyItem = TypeVar("AnyItem", bound=ItemFields)

LABELS_MAX = 1_000  # of an enum type; casts to and from text compare a value with each label
SPACING = 1 << 32  # between the numbers of two labels, so that 32 labels fit between them


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomType(ItemFields):
    """A name for a type of ksqlDB. `definition`: the type as ksqlDB writes it."""

    kind: ClassVar[Literal["type"]] = "type"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "type"
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum(ItemFields):
    """An enum type. `labels`: pairs of number and text, in order (`lake.types.EnumType`)."""

    kind: ClassVar[Literal["enum"]] = "enum"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "type"
    labels: tuple[tuple[int, str], ...] = field(default=(), metadata=option(always=True))

    def type(self, schema: str) -> Type:
        """Returns the type. `schema`: the name of its schema."""
        return Type("enum", enum=EnumType(self.id, self.name, schema, self.labels))


def number_between(before: int | None, after: int | None) -> int | None:
    """Returns a number for a label between two others, of which the first or the last may be missing; None if all are used.

    >>> number_between(None, None) == SPACING, number_between(SPACING, None) == 2 * SPACING
    (True, True)
    """
    if before is None:
        return SPACING if after is None else after - SPACING
    if after is None:
        return before + SPACING
    return (before + after) // 2 if after - before > 1 else None


def enums_of(item: ItemFields) -> frozenset[int]:
    """Returns the ids of the enum types of the columns that an item has. Dropped columns do not count."""
    return frozenset(c.type.enum.id for c in item.columns if c.type.enum is not None and not c.is_dropped)


def with_enums(item: AnyItem, types: Mapping[int, Type]) -> AnyItem:
    """Returns the item with these enum types, by id, in its columns."""
    if not any(c.type.enum is not None and c.type.enum.id in types for c in item.columns):
        return item
    return replace(item, columns=tuple(_with_enums(column, types) for column in item.columns))


def _with_enums(column: Field, types: Mapping[int, Type]) -> Field:
    enum = column.type.enum
    type = None if enum is None else types.get(enum.id)
    return column if type is None else replace(column, type=replace(column.type, enum=type.enum))
