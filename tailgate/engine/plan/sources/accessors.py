"""Access to fields of a decoded value: a struct, or a jsonb if the decoder lacks a declared type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tailgate.engine.plan.sources.spark_sql import cast_of, name, text, uuid_of
from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.types import JSON, JSONB, NUMERIC, TEXT, UUID, Field, Type

# types for which the decoder of declared JSON columns returns the value that PostgreSQL's cast
# would return
NATIVE = frozenset(
    {"int2", "int4", "int8", "float4", "float8", "numeric", "text", "bool", "bytea", "date", "timestamp", "timestamptz", "uuid"}
)
# types that the decoder of Debezium's JSON returns as text
CONNECT_TEXTS = frozenset({"inet", "cidr", "macaddr", "macaddr8", "timetz", "bit", "varbit", "char", *ALL_RANGES})
CONNECT_MONEY = replace(NUMERIC, modifiers=(19, 2), declared=True)  # 64 bits of cents


def connect_type(type: Type) -> Type:
    """Returns the type as which the decoder of Debezium's JSON returns values of a column's type. It returns arrays as they are stored."""
    if type.is_array:
        return type
    return TEXT if type.name in CONNECT_TEXTS else CONNECT_MONEY if type.name == "money" else type


def connect_value(value: str, type: Type) -> str:
    """Returns Spark SQL of the stored form of a value of Debezium's JSON, from the value of the decoder."""
    decoded = connect_type(type)
    return value if decoded == type else cast_of(value, decoded, type)


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct; `at` is Spark SQL."""

    at: str

    def field(self, *path: str) -> str:
        """Returns Spark SQL of the field at a path."""
        return ".".join([self.at, name(*path)]) if path else self.at

    def column(self, column: Field, *path: str) -> str:
        """Returns Spark SQL of a column's stored form."""
        value = self.field(*path, column.name)
        return uuid_of(value) if column.type == UUID else value

    def exists(self, *path: str) -> str:
        """Returns Spark SQL for whether the field at a path is not NULL."""
        return f"{self.field(*path)} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Document:
    """A jsonb; `at` is Spark SQL of its text.

    JSON's null is read as NULL, except for a column of type json or jsonb.
    """

    at: str

    def field(self, *path: str) -> str:
        """Returns Spark SQL of the text of the value at a path."""
        return f"tg_jsonb_path_text({self.at}, {_path(path)})"

    def column(self, column: Field, *path: str) -> str:
        """Returns Spark SQL of a column's stored form, with PostgreSQL's cast of the value's text."""
        if column.type in (JSON, JSONB):
            return f"tg_jsonb_path({self.at}, {_path((*path, column.name))})"
        return cast_of(self.field(*path, column.name), TEXT, column.type)

    def exists(self, *path: str) -> str:
        """Returns Spark SQL for whether the value at a path is not NULL."""
        return f"{self.field(*path)} IS NOT NULL" if path else f"{self.at} IS NOT NULL"


Accessor: TypeAlias = Struct | Document


def native(columns: tuple[Field, ...]) -> bool:
    """Returns whether the decoder can read all declared columns directly."""
    return all(c.type.name in NATIVE for c in columns)


def _path(path: tuple[str, ...]) -> str:
    return f"array({', '.join(map(text, path))})"
