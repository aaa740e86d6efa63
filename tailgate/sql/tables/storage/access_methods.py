"""Access methods of indexes: which columns and options PostgreSQL accepts for each. An index is a look-up here, whatever its method.

Source: PostgreSQL 15, section 11.10, "Operator Classes and Operator Families"; pg_opclass.dat; DefineIndex().
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, UndefinedObject
from tailgate.lake.ranges import MULTIRANGES, RANGES
from tailgate.lake.types import Type
from tailgate.sql.functions.comparison import TYPES
from tailgate.sql.statements import CreateIndex
from tailgate.sql.statements.definitions import IndexMethod

TEXTS, NETWORKS = ("text", "varchar"), ("inet", "cidr")
SCALARS = tuple(type for type in TYPES if type not in (*RANGES, *MULTIRANGES))
Classes = Mapping[str, tuple[str, ...]]  # names of operator classes, with the types that they accept
BTREE: Classes = {  # patterns are compared in C order, as all texts are
    **{f"{type}_ops": (type,) for type in (*SCALARS, "bpchar", "interval", "jsonb", "enum", "array")},
    "range_ops": tuple(RANGES),
    "multirange_ops": tuple(MULTIRANGES),
    **dict.fromkeys(("text_ops", "varchar_ops", "text_pattern_ops", "varchar_pattern_ops"), TEXTS),
    **dict.fromkeys(("inet_ops", "cidr_ops"), NETWORKS),
    "bpchar_pattern_ops": ("bpchar",),
    **dict.fromkeys(("record_ops", "record_image_ops"), ("record",)),
}
HASH: Classes = {name: types for name, types in BTREE.items() if name not in ("bit_ops", "varbit_ops", "money_ops", "record_image_ops")}
WITH_DISTANCES = (
    "int8", "int2", "int4", "oid", "float4", "float8", "macaddr", "macaddr8", "time", "date", "timestamp", "timestamptz", "interval",
    "timetz", "numeric", "uuid",
)  # fmt: skip
WITH_HASHES = (*WITH_DISTANCES, "bytea", "char", "name", "bpchar")
WITH_MINIMA = (*WITH_HASHES, "bit", "varbit")
GIN: Classes = {"array_ops": ("array",), "jsonb_ops": ("jsonb",), "jsonb_path_ops": ("jsonb",)}
GIST: Classes = {"range_ops": tuple(RANGES), "multirange_ops": tuple(MULTIRANGES), "inet_ops": NETWORKS}
BRIN: Classes = {  # the default of a type is the first one
    **{f"{type}_minmax_ops": (type,) for type in WITH_MINIMA},
    "text_minmax_ops": TEXTS,
    "inet_inclusion_ops": NETWORKS,
    "range_inclusion_ops": tuple(RANGES),
    **{f"{type}_minmax_multi_ops": (type,) for type in WITH_DISTANCES},
    **{f"{type}_bloom_ops": (type,) for type in WITH_HASHES},
    "text_bloom_ops": TEXTS,
    **dict.fromkeys(("inet_minmax_ops", "inet_minmax_multi_ops", "inet_bloom_ops"), NETWORKS),
}


@dataclass(frozen=True, slots=True)
class AccessMethod:
    """An access method. `without_default`: operator classes that are not the default of their types."""

    classes: Classes
    unique: bool = False
    included: bool = False
    multicolumn: bool = True
    ordered: bool = False
    without_default: tuple[str, ...] = (
        "varchar_ops", "text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops", "cidr_ops", "record_image_ops"
    )  # fmt: skip

    def default_class(self, type: Type) -> str | None:
        """Returns the operator class of a type without one in the statement, or None if there is none."""
        return next((name for name, types in self.classes.items() if _kind(type) in types and name not in self.without_default), None)


METHODS: Mapping[str, AccessMethod] = {
    "btree": AccessMethod(BTREE, unique=True, included=True, ordered=True),
    "hash": AccessMethod(HASH, multicolumn=False),
    "gin": AccessMethod(GIN, without_default=("jsonb_path_ops",)),
    "gist": AccessMethod(GIST, included=True, without_default=("inet_ops",)),
    "spgist": AccessMethod({"range_ops": tuple(RANGES), "text_ops": TEXTS, "inet_ops": NETWORKS}, included=True, multicolumn=False),
    "brin": AccessMethod(BRIN),
}


def check_method(statement: CreateIndex) -> None:
    """Raises 0A000 for features that indexes of the method lack in PostgreSQL."""
    method = METHODS[statement.method]
    for what in _missing(statement, method):
        raise FeatureNotSupported(f'access method "{statement.method}" does not support {what}')


def _missing(statement: CreateIndex, method: AccessMethod) -> Iterator[str]:
    if statement.unique and not method.unique:
        yield "unique indexes"
    if statement.include and not method.included:
        yield "included columns"
    if len(statement.columns) > 1 and not method.multicolumn:
        yield "multicolumn indexes"
    if any(c.descending for c in statement.columns) and not method.ordered:
        yield "ASC/DESC options"
    if any(c.nulls_first for c in statement.columns) and not method.ordered:
        yield "NULLS FIRST/LAST options"


def operator_class(name: str, type: Type, method: IndexMethod) -> str:
    """Returns the operator class of a column, '' for the default of its type. Raises 42704 and 42804."""
    default = METHODS[method].default_class(type)
    if not name and default is None:
        raise without_default_class(type, method)
    if not name or name == default:
        return ""
    if name not in METHODS[method].classes:
        raise UndefinedObject(f'operator class "{name}" does not exist for access method "{method}"')
    if _kind(type) not in METHODS[method].classes[name]:
        raise DatatypeMismatch(f'operator class "{name}" does not accept data type {type}')
    return name


def without_default_class(type: Type, method: IndexMethod) -> UndefinedObject:
    """Returns the error for a type that an index of the method does not accept without an operator class."""
    return UndefinedObject(
        f'data type {type} has no default operator class for access method "{method}"',
        hint="You must specify an operator class for the index or define a default operator class for the data type.",
    )


def _kind(type: Type) -> str:
    return "array" if type.is_array else type.name
