"""Names of PostgreSQL's own objects by oid, and what its functions tell about them. Each is read from the fixed rows at its first use."""

from __future__ import annotations

from functools import cache

from tailgate.gateway.catalog.relations.fixed_rows import values
from tailgate.gateway.catalog.relations.signatures import index_definitions
from tailgate.lake.catalog.roles import SCHEMA_ID


@cache
def types() -> dict[int, tuple[str, int, int, str]]:
    """Returns name, namespace, element and kind of the types."""
    return {oid: (name, *others) for oid, name, *others in values("pg_type", "oid", "typname", "typnamespace", "typelem", "typtype")}


@cache
def classes() -> dict[int, tuple[str, int, str]]:
    """Returns name, namespace and kind of the relations."""
    return {oid: (name, *others) for oid, name, *others in values("pg_class", "oid", "relname", "relnamespace", "relkind")}


@cache
def functions() -> dict[int, tuple[str, int]]:
    """Returns name and namespace of the functions."""
    return {oid: (name, namespace) for oid, name, namespace in values("pg_proc", "oid", "proname", "pronamespace")}


@cache
def namespaces() -> dict[int, str]:
    """Returns the names of the schemas, without `public`, which a lake may change."""
    return {oid: name for oid, name in values("pg_namespace", "oid", "nspname") if oid != SCHEMA_ID}


@cache
def roles() -> dict[int, str]:
    return dict(values("pg_roles", "oid", "rolname"))


@cache
def constraints() -> dict[int, tuple[str, tuple[str, ...]]]:
    """Returns PRIMARY KEY or UNIQUE, and the columns, of the constraints that have indexes."""
    words, indexes = {"p": "PRIMARY KEY", "u": "UNIQUE"}, index_definitions()
    rows = values("pg_constraint", "oid", "contype", "conindid")
    return {oid: (words[kind], indexes[index][2]) for oid, kind, index in rows if kind in words and index in indexes}


@cache
def settings() -> dict[str, str | None]:
    """Returns the values of PostgreSQL's settings, by their names in lower case."""
    return {name.lower(): value for name, value in values("pg_settings", "name", "setting")}


@cache
def descriptions() -> dict[tuple[int, int, int], str]:
    """Returns the comments by class, object and column."""
    return {
        (kind, oid, column): text for kind, oid, column, text in values("pg_description", "classoid", "objoid", "objsubid", "description")
    }


@cache
def shared_descriptions() -> dict[tuple[int, int], str]:
    """Returns the comments on databases, by class and object."""
    return {(kind, oid): text for kind, oid, text in values("pg_shdescription", "classoid", "objoid", "description")}
