"""PostgreSQL's types: their oids, and how Spark, Arrow, DuckDB and Avro store each one.

    PostgreSQL type ──► Type (this module) ──► spark | arrow | duckdb | avro of the *stored form*

Where a system lacks a type, its values have another *stored form*: time is a bigint of microseconds, timetz a bigint in the order of the
values; money is cents; interval is months, days and microseconds; json is text, jsonb canonical text; uuid, macaddr and bit are text,
regclass and regtype an oid and a name; inet, cidr, ranges and multiranges are sortable bytes. A `numeric` is fixed or general (ADR 0020). A
fixed one is a decimal everywhere. Without a declared precision and scale it has 38 digits and the scale of its expression (0 for
`sum(bigint)`, 16 by default), and clients see no type modifier. A general one has a display scale per value, NaN and infinities: a column
of a table without a declared precision, or the result of a query. It is a struct of unscaled value and display scale or, beyond 38 digits,
of sortable bytes (`lake.sortable`), and text in Delta. The value of an enum is the number of its label (ADR 0022). A row is a struct, also
one of a composite type.

Source: PostgreSQL 15, catalog pg_type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tailgate.lake.intervals import FIELDS_BY_MASK, FULL_RANGE, interval_name
from tailgate.lake.keywords import quoted
from tailgate.lake.ranges import ALL_RANGES


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of a type that do not depend on modifiers. `sql`: its name in format_type(). `size`: pg_type.typlen."""

    name: str
    oid: int
    array_oid: int
    size: int
    category: str
    sql: str
    spark: str
    duckdb: str
    avro: str


INTERVAL_SPARK = "struct<months:int,days:int,micros:bigint>"
INTERVAL_DUCKDB = "STRUCT(months INTEGER, days INTEGER, micros BIGINT)"
# a general numeric: unscaled value and display scale, or NULL and the sortable bytes
GENERAL_SPARK = "struct<u:decimal(38,0),s:smallint,x:binary>"
GENERAL_DUCKDB = "STRUCT(u DECIMAL(38,0), s SMALLINT, x BLOB)"
GENERAL_ARROW = pa.struct([("u", pa.decimal128(38, 0)), ("s", pa.int16()), ("x", pa.binary())])
# a multidimensional array (ADR 0026): its elements, and its dimensions (`values.composites.dimensions`)
DIMENSIONS_SPARK, DIMENSIONS_DUCKDB = "struct<elements:{},dimensions:array<int>>", "STRUCT(elements {}, dimensions INTEGER[])"

FACTS: dict[str, Facts] = {
    f.name: f
    for f in (
        Facts("bool", 16, 1000, 1, "B", "boolean", "boolean", "BOOLEAN", "boolean"),
        Facts("bytea", 17, 1001, -1, "U", "bytea", "binary", "BLOB", "bytes"),
        Facts("int8", 20, 1016, 8, "N", "bigint", "bigint", "BIGINT", "long"),
        Facts("int2", 21, 1005, 2, "N", "smallint", "smallint", "SMALLINT", "int"),
        Facts("int4", 23, 1007, 4, "N", "integer", "int", "INTEGER", "int"),
        Facts("text", 25, 1009, -1, "S", "text", "string", "VARCHAR", "string"),
        Facts("float4", 700, 1021, 4, "N", "real", "float", "FLOAT", "float"),
        Facts("float8", 701, 1022, 8, "N", "double precision", "double", "DOUBLE", "double"),
        Facts("bpchar", 1042, 1014, -1, "S", "character", "string", "VARCHAR", "string"),
        Facts("varchar", 1043, 1015, -1, "S", "character varying", "string", "VARCHAR", "string"),
        Facts("char", 18, 1002, 1, "Z", '"char"', "string", "VARCHAR", "string"),
        Facts("date", 1082, 1182, 4, "D", "date", "date", "DATE", "date"),
        Facts("time", 1083, 1183, 8, "D", "time without time zone", "bigint", "BIGINT", "time-micros"),
        Facts("timetz", 1266, 1270, 12, "D", "time with time zone", "bigint", "BIGINT", "string"),
        Facts("timestamp", 1114, 1115, 8, "D", "timestamp without time zone", "timestamp_ntz", "TIMESTAMP", "timestamp-micros"),
        Facts("timestamptz", 1184, 1185, 8, "D", "timestamp with time zone", "timestamp", "TIMESTAMPTZ", "timestamp-micros"),
        Facts("interval", 1186, 1187, 16, "T", "interval", INTERVAL_SPARK, INTERVAL_DUCKDB, "interval"),
        Facts("numeric", 1700, 1231, -1, "N", "numeric", "decimal", "DECIMAL", "decimal"),
        Facts("money", 790, 791, 8, "N", "money", "bigint", "BIGINT", "string"),
        Facts("uuid", 2950, 2951, 16, "U", "uuid", "string", "VARCHAR", "uuid"),
        Facts("inet", 869, 1041, -1, "I", "inet", "binary", "BLOB", "string"),
        Facts("cidr", 650, 651, -1, "I", "cidr", "binary", "BLOB", "string"),
        Facts("macaddr", 829, 1040, 6, "U", "macaddr", "string", "VARCHAR", "string"),
        Facts("macaddr8", 774, 775, 8, "U", "macaddr8", "string", "VARCHAR", "string"),
        Facts("bit", 1560, 1561, -1, "V", "bit", "string", "VARCHAR", "string"),
        Facts("varbit", 1562, 1563, -1, "V", "bit varying", "string", "VARCHAR", "string"),
        *(Facts(name, oid, array_oid, -1, "R", name, "binary", "BLOB", "string") for name, (oid, array_oid) in ALL_RANGES.items()),
        Facts("json", 114, 199, -1, "U", "json", "string", "VARCHAR", "json"),
        Facts("jsonb", 3802, 3807, -1, "U", "jsonb", "string", "VARCHAR", "json"),
        Facts("jsonpath", 4072, 4073, -1, "U", "jsonpath", "string", "VARCHAR", "string"),
        Facts("oid", 26, 1028, 4, "N", "oid", "bigint", "BIGINT", "long"),
        *(Facts(name, oid, oid + 5, 4, "N", name, "string", "VARCHAR", "string") for name, oid in (("regclass", 2205), ("regtype", 2206))),
        Facts("name", 19, 1003, 64, "S", "name", "string", "VARCHAR", "string"),
        Facts("record", 2249, 2287, -1, "P", "record", "struct", "STRUCT", "record"),
        # an enum type; its oids and name are those of `Type.enum`
        Facts("enum", 0, 0, 4, "E", "enum", "bigint", "BIGINT", "string"),
        # a quoted literal or NULL whose context has not given it a type yet; stored as text if it never gets one
        Facts("unknown", 705, 0, -2, "X", "unknown", "string", "VARCHAR", "string"),
    )
}

FRACTIONAL = ("time", "timetz", "timestamp", "timestamptz", "interval")  # types whose modifier is the number of fractional digits
MICROSECONDS = 6  # the largest number of fractional digits of a second
NUMERIC_PRECISION = 38  # digits: the maximum of decimals in Spark, Arrow and DuckDB
NUMERIC_SCALE = 16  # scale of an undeclared numeric: the minimum that PostgreSQL's division shows

ARRAYS_OF_NAMED = 5 << 28  # the id of a named type and this number are the oid of its array type

DROPPED = "........pg.dropped."  # begins the name of a dropped column, as in PostgreSQL


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relation, or a field of a record.

    `origin`: for a column of a result, the relation and column number that it was read from. `domain`: the domain of a column of a
    table, whose base type is `type`.
    """

    name: str
    type: Type
    nullable: bool = True
    origin: tuple[int, int] | None = field(default=None, compare=False, repr=False)
    domain: DomainType | None = field(default=None, repr=False)

    @property
    def is_dropped(self) -> bool:
        """Returns whether this is the place of a column that ALTER TABLE has dropped. Its rows may still have values."""
        return self.name.startswith(DROPPED)


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type that a user has created, as columns know it. This class is that of composite types, whose fields are in `Type.fields`.

    - `id`: of its item in the catalog, and its oid; 0 in a parsed statement, whose names are not resolved yet.
    - `name`, `schema`: its name; a schema of '' is not known yet.
    """

    id: int
    name: str
    schema: str

    @property
    def sql(self) -> str:
        """Returns the name as format_type() prints it, with a schema other than public."""
        return quoted(self.name) if self.schema in ("", "public") else f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class DomainType(NamedType):
    """A domain: a name for its base type, with constraints. Its values have the base type.

    - `default`: an expression as text, or None.
    - `not_null`, `checks`: the constraints, with those of the domain that it is based on; pairs of a name and a condition over VALUE.
    """

    not_null: bool = False
    default: str | None = None
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class EnumType(NamedType):
    """An enum type. `labels`: pairs of number and text. Values are the numbers, which are in the order of the labels and never change."""

    labels: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Type:
    """A PostgreSQL type with its modifiers.

    - `modifiers`: (precision, scale) of numeric, (length,) of varchar and bpchar, (fractional digits of a second,) of a time,
      timestamp or interval, (digits or FULL_PRECISION, bits) of an interval with fields; otherwise empty.
    - `declared`: whether the user wrote the modifiers. Only then do clients see them as typmod.
    - `is_array`: whether this is an array; then `name` is the name of the element type.
    - `multidimensional`: whether each value of this array type has any number of dimensions, with any lower bounds. Otherwise
      all have one dimension with the lower bound 1.
    - `general`: whether this is a numeric whose values have a display scale each. It has only modifiers that no decimal has: (78, 0).
    - `enum`, `composite`: the enum type, if `name` is enum; the composite type, if `name` is record and its rows have one.
    - `fields`: the fields of a record. In storage they are called f1, f2, …, because records with other names can be
      compared, and because the names may be equal, or equal but for case.
    """

    name: str
    modifiers: tuple[int, ...] = ()
    declared: bool = True
    is_array: bool = False
    fields: tuple[Field, ...] = ()
    general: bool = field(default=False, repr=False)
    enum: EnumType | None = field(default=None, repr=False)
    multidimensional: bool = field(default=False, repr=False)
    composite: NamedType | None = field(default=None, repr=False)

    @property
    def facts(self) -> Facts:
        facts, own = FACTS[self.name], self.enum or self.composite
        if own is not None:
            category = "E" if self.enum is not None else "C"
            facts = replace(facts, oid=own.id, array_oid=own.id + ARRAYS_OF_NAMED, category=category, sql=own.sql)
        return facts

    @property
    def named(self) -> tuple[Type, ...]:
        """Returns the enum and composite types of the values in this type, each once, its own first."""
        own = (self.element,) if self.enum is not None or self.composite is not None else ()
        return tuple(dict.fromkeys((*own, *(t for f in self.fields for t in f.type.named))))

    @property
    def labels(self) -> tuple[tuple[int, str], ...]:
        """Returns the numbers and texts of the labels of an enum, in order."""
        assert self.enum is not None, self
        return self.enum.labels

    @property
    def oid(self) -> int:
        return self.facts.array_oid if self.is_array else self.facts.oid

    @property
    def size(self) -> int:
        return -1 if self.is_array else FACTS[self.name].size

    @property
    def typmod(self) -> int:
        """Returns pg_attribute.atttypmod: -1 if the user declared no modifiers."""
        if not self.modifiers or not self.declared:
            return -1
        if self.name == "numeric":
            precision, scale = self.modifiers
            return (precision << 16 | scale & 0x7FF) + 4
        if self.name == "interval":
            return (self.modifiers[1] if self.fields_of_interval else FULL_RANGE) << 16 | self.modifiers[0]
        return self.modifiers[0] + 4 if self.name in ("varchar", "bpchar") else self.modifiers[0]

    @property
    def fields_of_interval(self) -> str:
        """Returns the fields of an interval type, such as `day to hour`, or nothing if it has all."""
        return FIELDS_BY_MASK[self.modifiers[1]] if self.name == "interval" and len(self.modifiers) > 1 else ""

    @property
    def element(self) -> Type:
        """Returns the element type of an array."""
        return replace(self, is_array=False, multidimensional=False)

    @property
    def leaves(self) -> frozenset[str]:
        """Returns the names of the types of the values in this type: those of the fields of a record, else its own."""
        return frozenset[str]().union(*(f.type.leaves for f in self.fields)) if self.fields else frozenset((self.name,))

    def array(self, *, multidimensional: bool = False) -> Type:
        """Returns the array type with this element type, or of the elements of this array."""
        return replace(self, is_array=True, multidimensional=multidimensional)

    def __str__(self) -> str:
        """Returns the type's name as format_type() prints it."""
        text = self.facts.sql
        if self.name == "interval" and self.modifiers:
            text = interval_name(self.typmod)
        elif self.modifiers and self.declared:
            word, space, zone = text.partition(" ") if self.name in FRACTIONAL else (text, "", "")
            text = word + "(" + ",".join(map(str, self.modifiers)) + ")" + space + zone
        return text + ("[]" if self.is_array else "")

    @property
    def decimal(self) -> tuple[int, int]:
        """Returns the precision and scale of a fixed numeric's stored form."""
        assert not self.general, self
        return (self.modifiers[0], self.modifiers[1]) if self.modifiers else (NUMERIC_PRECISION, NUMERIC_SCALE)

    @property
    def spark(self) -> str:
        """Returns the stored form in Spark's DDL."""
        if self.is_array:
            elements = f"array<{self.element.spark}>"
            return DIMENSIONS_SPARK.format(elements) if self.multidimensional else elements
        if self.general:
            return GENERAL_SPARK
        if self.name == "numeric":
            return "decimal({},{})".format(*self.decimal)
        if self.name == "record":
            return "struct<" + ",".join(f"f{n}:{f.type.spark}" for n, f in enumerate(self.fields, 1)) + ">"
        return self.facts.spark

    @property
    def duckdb(self) -> str:
        """Returns the stored form in DuckDB's SQL."""
        if self.is_array:
            elements = self.element.duckdb + "[]"
            return DIMENSIONS_DUCKDB.format(elements) if self.multidimensional else elements
        if self.general:
            return GENERAL_DUCKDB
        if self.name == "numeric":
            return "DECIMAL({},{})".format(*self.decimal)
        if self.name == "record":
            return "STRUCT(" + ", ".join(f"f{n} {f.type.duckdb}" for n, f in enumerate(self.fields, 1)) + ")"
        return self.facts.duckdb

    @property
    def arrow(self) -> pa.DataType:
        """Returns the stored form in Arrow."""
        if self.is_array:
            elements = pa.list_(self.element.arrow)
            return pa.struct([("elements", elements), ("dimensions", pa.list_(pa.int32()))]) if self.multidimensional else elements
        if self.general:
            return GENERAL_ARROW
        if self.name == "numeric":
            return pa.decimal128(*self.decimal)
        if self.name == "record":
            return pa.struct([pa.field(f"f{n}", f.type.arrow) for n, f in enumerate(self.fields, 1)])
        return ARROW[self.name]

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"name": self.name}
        if self.modifiers:
            out["modifiers"] = list(self.modifiers)
        if not self.declared:
            out["declared"] = False
        if self.is_array:
            out["array"] = True
        if self.general:
            out["general"] = True
        if self.multidimensional:
            out["multidimensional"] = True
        if (enum := self.enum) is not None:
            out["enum"] = [enum.id, enum.name, enum.schema, [list(label) for label in enum.labels]]
        if self.composite is not None:
            out["composite"] = [self.composite.id, self.composite.name, self.composite.schema]
        if self.fields:
            out["fields"] = [field_to_json(f) for f in self.fields]
        return out

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Type:
        return Type(
            data["name"],
            tuple(data.get("modifiers", ())),
            data.get("declared", True),
            data.get("array", False),
            tuple(field_from_json(f) for f in data.get("fields", ())),
            data.get("general", False),
            EnumType(*(*data["enum"][:3], tuple(map(tuple, data["enum"][3])))) if "enum" in data else None,
            data.get("multidimensional", False),
            NamedType(*data["composite"]) if "composite" in data else None,
        )


def field_to_json(field: Field) -> dict[str, object]:
    """Returns a column as JSON values, without its origin."""
    out: dict[str, object] = {"name": field.name, "type": field.type.to_json(), "nullable": field.nullable}
    if (domain := field.domain) is not None:
        checks = [list(check) for check in domain.checks]
        out["domain"] = [domain.id, domain.name, domain.schema, domain.not_null, domain.default, checks]
    return out


def field_from_json(data: Mapping[str, Any]) -> Field:
    type, domain = Type.from_json(data["type"]), None
    if "domain" in data:
        id, name, schema, not_null, default, checks = data["domain"]
        domain = DomainType(id, name, schema, not_null, default, tuple(map(tuple, checks)))
    return Field(data["name"], type, data["nullable"], domain=domain)


ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    **dict.fromkeys(("bytea", "inet", "cidr", *ALL_RANGES), pa.binary()),
    **dict.fromkeys(("int8", "time", "timetz", "money", "oid", "enum"), pa.int64()),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())]),
    **{facts.name: pa.string() for facts in FACTS.values() if facts.duckdb == "VARCHAR"},
}

BOOL, BYTEA, TEXT, JSON, JSONB = Type("bool"), Type("bytea"), Type("text"), Type("json"), Type("jsonb")
INT2, INT4, INT8, FLOAT4, FLOAT8 = Type("int2"), Type("int4"), Type("int8"), Type("float4"), Type("float8")
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL = Type("date"), Type("time"), Type("timestamp"), Type("timestamptz"), Type("interval")
UUID, OID, NAME, UNKNOWN, BIT = Type("uuid"), Type("oid"), Type("name"), Type("unknown"), Type("bit")
NUMERIC, GENERAL = Type("numeric"), Type("numeric", general=True)


def numeric(scale: int) -> Type:
    """Returns a numeric whose scale follows from its expression. Clients do not see the scale."""
    return Type("numeric", (NUMERIC_PRECISION, scale), declared=False)


WEIGHT = "__weight"  # last column of changes in Arrow: int64, the number of copies added (positive) or removed (negative)


def arrow_schema(fields: tuple[Field, ...], *, weight: bool = False) -> pa.Schema:
    """Returns the Arrow schema of a relation's stored form, with a weight column if `weight` is true."""
    columns = [pa.field(f.name, f.type.arrow, True) for f in fields]
    return pa.schema([*columns, pa.field(WEIGHT, pa.int64(), False)] if weight else columns)


# the types of PostgreSQL's oids, with those of arrays
BY_OID = {f.oid: Type(f.name) for f in FACTS.values() if f.oid} | {
    f.array_oid: Type(f.name, is_array=True) for f in FACTS.values() if f.array_oid
}
