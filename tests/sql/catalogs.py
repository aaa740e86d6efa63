"""A small catalog for tests of `sql`, and the same relations for a real PostgreSQL."""

from __future__ import annotations

from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.types import BOOL, BYTEA, DATE, FLOAT8, INT2, INT4, INT8, JSONB, TEXT, TIMESTAMP, TIMESTAMPTZ, Field, Type

COLUMNS = {
    "users": (Field("id", INT4, False), Field("email", TEXT), Field("is_vip", BOOL), Field("created_at", TIMESTAMPTZ)),
    "orders": (
        Field("id", INT8, False),
        Field("user_id", INT4),
        Field("amount", Type("numeric", (10, 2))),
        Field("placed", TIMESTAMP),
        Field("day", DATE),
    ),
    "events": (Field("data", JSONB), Field("n", INT2), Field("x", FLOAT8), Field("name", Type("varchar", (20,))), Field("raw", BYTEA)),
}
KEYS = {"users": (0,), "orders": (0,)}


def make_catalog() -> Catalog:
    catalog = Catalog()
    for name, columns in COLUMNS.items():
        key = KEYS.get(name)
        catalog = catalog.apply(
            Change((Source(catalog.next_id, name, columns, key, stored=key is not None, envelope="upsert" if key is not None else "none"),))
        )
    return catalog


DDL = [
    f"CREATE TEMPORARY TABLE {name} ({', '.join(f'{c.name} {c.type}' for c in columns)}{', PRIMARY KEY (id)' if name in KEYS else ''})"
    for name, columns in COLUMNS.items()
]
