"""Data for the catalog functions: names and oids of a catalog's objects, and an interface to the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from tailgate.gateway.catalog.functions import fixed_names
from tailgate.gateway.catalog.relations import rows
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


class Facts:
    """Names and oids of all objects, PostgreSQL's own and those of a catalog. Each is found when a function asks for it first."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = Catalog() if catalog is None else catalog
        self.updatable: dict[int, tuple[int, frozenset[str]]] = {}  # by view, as far as asked (`updatable_views`)

    @cached_property
    def types(self) -> dict[int, tuple[str, int, int, str]]:
        """Returns name, namespace, element and kind of the types."""
        created = rows.pg_type(self.catalog)
        return fixed_names.types() | {r["oid"]: (r["typname"], r["typnamespace"], r["typelem"], r["typtype"]) for r in created}

    @cached_property
    def type_by_name(self) -> dict[str, int]:
        return {name: oid for oid, (name, namespace, _, _) in self.types.items() if namespace == 11 or oid >= FIRST_ID}

    @cached_property
    def classes(self) -> dict[int, tuple[str, int, str]]:
        """Returns name, namespace and kind of the relations."""
        created = rows.pg_class(self.catalog)
        return fixed_names.classes() | {r["oid"]: (r["relname"], r["relnamespace"], r["relkind"]) for r in created}

    @cached_property
    def by_name(self) -> dict[tuple[int, str], int]:
        """Returns the oids of the relations by namespace and name."""
        return {(namespace, name): oid for oid, (name, namespace, _) in self.classes.items()}

    @cached_property
    def functions(self) -> dict[int, tuple[str, int]]:
        """Returns name and namespace of the functions."""
        created = (item for item in self.catalog.visible if isinstance(item, Function))
        return fixed_names.functions() | {item.id: (item.name, item.schema) for item in created}

    @cached_property
    def namespaces(self) -> dict[int, str]:
        return fixed_names.namespaces() | {r["oid"]: r["nspname"] for r in rows.pg_namespace(self.catalog)}

    @cached_property
    def roles(self) -> dict[int, str]:
        return fixed_names.roles() | {role.id: role.name for role in self.catalog.all_roles().values() if role.id}

    @cached_property
    def descriptions(self) -> dict[tuple[int, int, int], str]:
        """Returns the comments by class, object and column."""
        return fixed_names.descriptions() | rows.comments(self.catalog)

    @cached_property
    def indexes(self) -> dict[int, rows.Indexed]:
        """Returns the indexes of the catalog's relations."""
        return {index.oid: index for index in rows.indexed(self.catalog)}

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
