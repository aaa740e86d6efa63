"""The database, and its schemas: the namespaces of relations and sinks. Part of the catalog.

A lake has one database, which a session calls by any name. It has `public` and the system schemas; users create others. Sessions see
them along a search path (`Catalog.along`).

Source: PostgreSQL 15, section 5.9, "Schemas".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from tailgate.lake.catalog.formats import Record, option
from tailgate.lake.catalog.roles import DATABASE_PRIVILEGES, OPERATOR_ID, SCHEMA_ID, SCHEMA_PRIVILEGES

SCHEMA = "public"
PG_CATALOG = "pg_catalog"
INFORMATION_SCHEMA = "information_schema"
ENDPOINTS = "pg_endpoint"  # schema of the relations that endpoints use: only superusers read them
TRANSIENT = "pg_transient"  # schema of the views that push queries of ksqlDB follow; they are dropped with their queries
TEMPORARY = "pg_temp"  # alias for the schema of a session's temporary relations, whose real name is pg_temp_<number>
TEMPORARY_ID = 3 << 28  # id of that schema; its relations follow. These ids are local to a session and never in the log
TAILGATE = "tailgate"  # schema of the relations of `lake.system_relations`
TAILGATE_ID = TEMPORARY_ID + (1 << 27)  # its id; its relations follow. They are in no log either


@dataclass(frozen=True, slots=True)
class Schema(Record):
    """A namespace. `owner`: id of the role that may drop it. `dropped`: whether `public` was dropped; other schemas are then gone."""

    id: int
    name: str
    owner: int = field(default=OPERATOR_ID, metadata=option(always=True))
    comment: str = field(default="", metadata=option(always=True))
    dropped: bool = False

    privileges: ClassVar[Mapping[str, str]] = SCHEMA_PRIVILEGES

    @property
    def privileges_of_everyone(self) -> frozenset[str]:
        if self.id == TEMPORARY_ID:
            return frozenset(("USAGE", "CREATE"))
        return frozenset(("USAGE",)) if self.id == SCHEMA_ID else frozenset()


@dataclass(frozen=True, slots=True)
class Database:
    """The database. `name`: by which a statement calls it, empty elsewhere."""

    name: str = ""
    id: int = 5  # PostgreSQL's oid of the database postgres
    owner: int = OPERATOR_ID

    privileges: ClassVar[Mapping[str, str]] = DATABASE_PRIVILEGES
    privileges_of_everyone: ClassVar[frozenset[str]] = frozenset(("TEMPORARY", "CONNECT"))


DATABASE = Database()
PUBLIC = Schema(SCHEMA_ID, SCHEMA, comment="standard public schema")
ENDPOINTS_ID, TRANSIENT_ID = 13122, 13123
IDEMPOTENCY_KEYS_TABLE = "idempotency_keys"  # in the schema ENDPOINTS
SYSTEM: Mapping[int, Schema] = {
    s.id: s
    for s in (
        Schema(11, PG_CATALOG),
        Schema(ENDPOINTS_ID, ENDPOINTS),
        Schema(TRANSIENT_ID, TRANSIENT),
        Schema(13124, INFORMATION_SCHEMA),
        Schema(TAILGATE_ID, TAILGATE),
    )
}
BUILT_IN: Mapping[int, Schema] = {**SYSTEM, PUBLIC.id: PUBLIC}


def is_temporary(id: int) -> bool:
    """Returns whether the id is that of a temporary relation of a session."""
    return TEMPORARY_ID < id < TAILGATE_ID


def is_system(id: int) -> bool:
    """Returns whether the id is that of the schema `tailgate` or of a relation in it."""
    return TAILGATE_ID <= id < 4 << 28


def is_logged(id: int) -> bool:
    """Returns whether the rows of a relation come from the log. Those of other relations are given to each statement that reads them."""
    return id < TEMPORARY_ID
