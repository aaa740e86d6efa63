"""Data for the catalog functions: names and oids of a catalog's objects, and an interface to the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from tailgate.gateway.catalog.relations import rows
from tailgate.gateway.catalog.relations.signatures import Signature, index_definitions, signatures
from tailgate.lake.catalog import FIRST_ID, Catalog, Function, Item
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import InvalidName


class SessionSettings(Protocol):
    """The settings of a session."""

    def has(self, name: str) -> bool:
        """Returns whether `get` has a value for this name."""

    def get(self, name: str) -> tuple[str, str]:
        """Returns the setting's canonical name and its value. Raises 42704 if it does not exist."""

    def __getitem__(self, key: str) -> str:
        """Returns the value of a setting by its canonical name."""

    def set(self, name: str, value: str, *, local: bool = False) -> str:
        """Sets a setting; returns the value as SHOW prints it."""


class Session(Protocol):
    """The part of a session that the functions use. `process` is the value of pg_backend_pid()."""

    database: str
    database_oid: int
    user: str
    process: int

    @property
    def settings(self) -> SessionSettings: ...

    @property
    def role(self) -> Role:
        """Returns the role whose privileges apply."""

    def computed(self, relation: str) -> list[dict[str, Any]]:
        """Returns the rows of a relation of `database.COMPUTED`; of pg_settings, those that PostgreSQL lacks."""

    def reload_settings(self) -> bool:
        """Makes all processes read their settings again. Raises 42501 if the role is not a superuser."""

    def listing(self, relation: str, status: Mapping[str, Any]) -> list[dict[str, Any]] | pa.Table:
        """Returns the rows of a relation of the schema tailgate that the role may see. `status`: the engine's, or empty."""

    def export_snapshot(self) -> str:
        """Returns a name under which other sessions can read at the time of this transaction."""

    def release_advisory_locks(self) -> str:
        """Releases the advisory locks of the session. Returns an empty text."""

    def notify(self, channel: str, payload: str) -> str:
        """Sends a notification at COMMIT. Returns an empty text."""

    def listening_channels(self) -> list[str]:
        """Returns the channels to which the session listens."""

    def notification_queue_usage(self) -> float:
        """Returns the part of the queue of notifications to other gateways that is in use."""

    def signal(self, process: int, *, terminate: bool) -> bool:
        """Cancels the statement of a session, or ends the session. Returns False if it does not exist."""


@dataclass(slots=True)
class Facts:
    """Names and oids of all objects, PostgreSQL's own and Tailgate's."""

    catalog: Catalog = field(default_factory=Catalog)
    types: dict[int, tuple[str, int, int, str]] = field(default_factory=dict)  # oid → name, namespace, element, kind of type
    classes: dict[int, tuple[str, int, str]] = field(default_factory=dict)  # oid → name, namespace, relkind
    procs: dict[int, tuple[str, int]] = field(default_factory=dict)
    fixed_procs: dict[int, tuple[str, int]] = field(default_factory=dict)  # PostgreSQL's own
    namespaces: dict[int, str] = field(default_factory=dict)
    roles: dict[int, str] = field(default_factory=dict)
    fixed_roles: dict[int, str] = field(default_factory=dict)  # PostgreSQL's own
    signatures: dict[int, Signature] = field(default_factory=dict)  # of PostgreSQL's own functions
    fixed_indexes: dict[int, tuple[bool, int, tuple[str, ...]]] = field(default_factory=dict)  # unique, relation, columns
    fixed_constraints: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict)  # PRIMARY KEY or UNIQUE, columns
    settings: dict[str, str] = field(default_factory=dict)  # PostgreSQL's settings that a session does not have
    collations: dict[int, str] = field(default_factory=dict)
    descriptions: dict[tuple[int, int, int], str] = field(default_factory=dict)
    fixed_descriptions: dict[tuple[int, int, int], str] = field(default_factory=dict)  # PostgreSQL's own
    shared_descriptions: dict[tuple[int, int], str] = field(default_factory=dict)  # PostgreSQL's own, of databases
    by_name: dict[tuple[int, str], int] = field(default_factory=dict)
    type_by_name: dict[str, int] = field(default_factory=dict)
    updatable: dict[int, tuple[int, frozenset[str]]] = field(default_factory=dict)  # by view, as far as asked (`updatable_views`)

    def loaded(self, connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> Facts:
        """Returns the facts of another catalog; leaves these unchanged, as other threads may use them."""
        facts = copy(self)
        facts._load(connection, catalog)
        return facts

    def _load(self, connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
        """Reads the facts from the database; those of PostgreSQL's own objects only once."""

        def table(query: str) -> dict[int, Any]:
            return {row[0]: row[1:] if len(row) > 2 else row[1] for row in connection.execute(query).fetchall()}

        self.catalog, self.updatable = catalog, {}
        self.types = table("SELECT oid, typname, typnamespace, typelem, typtype FROM pg.pg_type")
        self.classes = table("SELECT oid, relname, relnamespace, relkind FROM pg.pg_class")
        self.namespaces = table("SELECT oid, nspname FROM pg.pg_namespace")
        self.by_name = {(namespace, name): oid for oid, (name, namespace, _) in self.classes.items()}
        self.type_by_name = {name: oid for oid, (name, namespace, _, _) in self.types.items() if namespace == 11 or oid >= FIRST_ID}
        if not self.fixed_procs:
            self.fixed_procs = table(f"SELECT oid, proname, pronamespace FROM pg.pg_proc WHERE oid < {FIRST_ID}")
            self.fixed_roles = table("SELECT oid, rolname FROM pg.fixed_pg_roles")
            self.signatures, self.fixed_indexes = signatures(connection), index_definitions(connection)
            keys = connection.execute("SELECT oid, contype, conindid FROM pg.pg_constraint WHERE contype IN ('p', 'u')").fetchall()
            self.fixed_constraints = {
                oid: ("PRIMARY KEY" if kind == "p" else "UNIQUE", self.fixed_indexes[index][2])
                for oid, kind, index in keys
                if index in self.fixed_indexes
            }
            self.collations = table("SELECT oid, collname FROM pg.pg_collation")
            self.settings = dict(connection.execute("SELECT lower(name), setting FROM pg.fixed_pg_settings").fetchall())
            fixed = f"SELECT classoid, objoid, objsubid, description FROM pg.pg_description WHERE objoid < {FIRST_ID}"
            descriptions = connection.execute(fixed).fetchall()
            shared = connection.execute("SELECT classoid, objoid, description FROM pg.fixed_pg_shdescription").fetchall()
            self.shared_descriptions = {(a, b): text for a, b, text in shared}
            self.fixed_descriptions = {(a, b, c): text for a, b, c, text in descriptions}
        self.procs = {**self.fixed_procs, **{i.id: (i.name, i.schema) for i in catalog.visible if isinstance(i, Function)}}
        self.descriptions = {**self.fixed_descriptions, **rows.comments(catalog)}

        self.roles = {**self.fixed_roles, **{r.id: r.name for r in catalog.all_roles().values() if r.id}}

    def item(self, relation: int) -> Item | None:
        return self.catalog.items.get(relation)


# Names that format_type prints instead of pg_type.typname.
SQL_NAMES = {
    16: "boolean", 18: '"char"', 20: "bigint", 21: "smallint", 23: "integer", 700: "real", 701: "double precision", 1042: "character",
    1043: "character varying", 1083: "time without time zone", 1114: "timestamp without time zone", 1184: "timestamp with time zone",
    1266: "time with time zone", 1560: "bit", 1562: "bit varying", 1700: "numeric", 1186: "interval",
}  # fmt: skip
WITHOUT_LENGTH = {1042: "bpchar", 1560: '"bit"'}
ALIASES = {
    "int": 23, "integer": 23, "int4": 23, "bigint": 20, "smallint": 21, "boolean": 16, "real": 700, "float": 701, "double precision": 701,
    "character varying": 1043, "character": 1042, "char": 1042, '"char"': 18, "decimal": 1700, "timestamp without time zone": 1114,
    "timestamp with time zone": 1184, "time without time zone": 1083, "time with time zone": 1266, "bit varying": 1562, "string": 25,
}  # fmt: skip


NAME_CHARACTERS_MAX = 2_000  # of a text that is parsed as a name with a regular expression


def name_text(text: str) -> str:
    """Returns the text unchanged. Raises 42602 if it is longer than any name."""
    if len(text) > NAME_CHARACTERS_MAX:
        raise InvalidName(f"a name of {len(text)} characters is too long")
    return text


def parse_name(text: str) -> list[str]:
    """Splits a qualified name into its parts, folding unquoted ones to lower case.

    >>> parse_name('public."Kv"'), parse_name("KV"), parse_name('"public" . "Kv" ')
    (['public', 'Kv'], ['kv'], ['public', 'Kv'])
    """
    name_text(text)
    parts = re.findall(r'"((?:[^"]|"")*)"|([^."\s](?:[^."]*[^."\s])?)', text)
    return [quoted.replace('""', '"') if quoted else plain.strip().lower() for quoted, plain in parts]
