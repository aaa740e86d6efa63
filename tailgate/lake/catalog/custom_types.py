"""The types that users create: custom types of ksqlDB, enum types, composite types and domains.

A column has its enum type with the labels (`Type.enum`), its composite type with the fields (`Type.composite`) and its domain with the
constraints (`Field.domain`), so that a value can be read, written and checked without the catalog. A change of a type changes the
columns of this type in the same entry of the log (`with_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias, TypeVar

from tailgate.lake.catalog.formats import CheckConstraint, option
from tailgate.lake.catalog.item_fields import ItemFields, Namespace
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import DomainType, EnumType, Field, NamedType, Type

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite(ItemFields):
    """A composite type. Its columns are the attributes."""

    kind: ClassVar[Literal["composite"]] = "composite"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "type"

    def type(self, schema: str) -> Type:
        """Returns the type. `schema`: the name of its schema."""
        return Type("record", fields=self.columns, composite=NamedType(self.id, self.name, schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain(ItemFields):
    """A domain. Its only column has its base type, and the domain that it is based on, if it is.

    `default`: an expression, or None. `not_null`, `checks`: its own constraints; conditions name the value VALUE, and have no columns.
    """

    kind: ClassVar[Literal["domain"]] = "domain"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "type"
    default: str | None = None
    not_null: bool = False
    checks: tuple[CheckConstraint, ...] = ()

    @property
    def base(self) -> Field:
        """Returns the value, with the type or domain on which the domain is based."""
        return self.columns[0]

    def type(self, schema: str) -> DomainType:
        """Returns the domain of columns. `schema`: the name of its schema."""
        below = self.base.domain
        checks = (*(below.checks if below is not None else ()), *((check.name, check.text) for check in self.checks))
        not_null = self.not_null or (below is not None and below.not_null)
        return DomainType(self.id, self.name, schema, not_null, self.default, checks)


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


UserType: TypeAlias = Enum | Composite | Domain  # the types of PostgreSQL that a user creates


def id_of(type: Type) -> int:
    """Returns the id of an enum or composite type, or 0."""
    own = type.enum or type.composite
    return 0 if own is None else own.id


def types_of(item: ItemFields) -> frozenset[int]:
    """Returns the ids of the enum types, composite types and domains of the columns that an item has. Dropped columns do not count."""
    return frozenset(id for c in item.columns if not c.is_dropped for id in types_of_column(c))


def types_of_column(column: Field) -> tuple[int, ...]:
    """Returns the ids of the domain of a column, and of the enum and composite types of its values and their fields."""
    return (*(() if column.domain is None else (column.domain.id,)), *map(id_of, column.type.named))


def check_no_column(type: ItemFields, tables: Iterable[ItemFields]) -> None:
    """Raises 0A000 if a column of one of the tables has values of a type, whose definition could therefore not be altered."""
    for table in tables:
        for column in table.columns:
            if not column.is_dropped and type.id in types_of_column(column):
                raise FeatureNotSupported(f'cannot alter type "{type.name}" because column "{table.name}.{column.name}" uses it')


def with_types(items: Mapping[int, AnyItem], schemas: Mapping[int, str]) -> dict[int, AnyItem]:
    """Returns the items with the types that are among them in their columns. `schemas`: the names of schemas by id."""
    types: dict[int, Type | DomainType] = {}

    def add(id: int) -> None:
        item: ItemFields | None = items.get(id)
        if id in types or not isinstance(item, UserType):
            return
        for other in types_of(item):
            add(other)
        types[id] = with_types_of(item, types).type(schemas[item.schema])

    for id in items:
        add(id)
    return {id: with_types_of(item, types) for id, item in items.items()}


def with_types_of(item: AnyItem, types: Mapping[int, Type | DomainType]) -> AnyItem:
    """Returns the item with these types, by id, in its columns."""
    if not any(id in types for column in item.columns for id in types_of_column(column)):
        return item
    return replace(item, columns=tuple(_with_types(column, types) for column in item.columns))


def _with_types(column: Field, types: Mapping[int, Type | DomainType]) -> Field:
    column = replace(column, type=_with_types_in(column.type, types))
    domain = None if column.domain is None else types.get(column.domain.id)
    return replace(column, domain=domain) if isinstance(domain, DomainType) else column


def _with_types_in(type: Type, types: Mapping[int, Type | DomainType]) -> Type:
    actual = types.get(id_of(type))
    if isinstance(actual, Type):
        return replace(type, fields=actual.fields, enum=actual.enum, composite=actual.composite)
    return replace(type, fields=tuple(_with_types(field, types) for field in type.fields)) if type.fields else type
