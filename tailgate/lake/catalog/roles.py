"""Roles: who may log in, and their privileges. Part of the catalog.

A lake without roles trusts every client on its machine. The first CREATE ROLE ends that. From then on there
are the created roles and OPERATOR, a superuser that always exists. The grants of PUBLIC apply to everyone.

    catalog.may(role, privilege, object)   owners and superusers: all privileges; others: those granted to them, to a
                                           role that they are members of, or to PUBLIC, on the object or on its columns

A member has the ownership and privileges of its roles, at any depth, but not their SUPERUSER and LOGIN attributes.

Source: PostgreSQL 15, chapter 22, "Database Roles"; section 5.7, "Privileges".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailgate.lake.catalog.formats import Record, option

SCHEMA_ID = 2200  # PostgreSQL's oid of the schema public
PUBLIC_ID, OPERATOR_ID = 0, 10

# letters in PostgreSQL's access lists, in its order, by kind of object
RELATION_PRIVILEGES = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t"}
COLUMN_PRIVILEGES = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "REFERENCES": "x"}
SCHEMA_PRIVILEGES = {"USAGE": "U", "CREATE": "C"}
SEQUENCE_PRIVILEGES = {"SELECT": "r", "UPDATE": "w", "USAGE": "U"}
CONNECTION_PRIVILEGES = {"USAGE": "U"}  # also of secrets
TYPE_PRIVILEGES = {"USAGE": "U"}  # which every role has
ENDPOINT_PRIVILEGES = {"EXECUTE": "X"}


@dataclass(frozen=True, slots=True)
class Role(Record):
    """A user or group with its privileges.

    - `verifier`: of the password, in PostgreSQL's form of SCRAM-SHA-256; None without a password.
    - `grants`: privileges by object id.
    - `column_grants`: privileges on columns by relation id and position of the column.
    - `tokens`: hashes of bearer tokens, by name (`lake.passwords`). `token_ends_ms`: when tokens end, in ms since the epoch.
    - `member_of`: ids of roles, with whether this role may add members to them (ADMIN OPTION).
    """

    id: int
    name: str
    login: bool = field(default=False, metadata=option(always=True))
    superuser: bool = field(default=False, metadata=option(always=True))
    verifier: str | None = field(default=None, repr=False, metadata=option(always=True))
    grants: Mapping[int, frozenset[str]] = field(default_factory=dict, metadata=option(always=True))
    member_of: Mapping[int, bool] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    token_ends_ms: Mapping[str, int] = field(default_factory=dict)
    column_grants: Mapping[int, Mapping[int, frozenset[str]]] = field(default_factory=dict)


def with_object_ids(role: Role, ids: Mapping[int, int]) -> Role:
    """Returns the role with other ids of objects in its privileges."""
    grants = {ids.get(id, id): privileges for id, privileges in role.grants.items()}
    return replace(role, grants=grants, column_grants={ids.get(id, id): columns for id, columns in role.column_grants.items()})


OPERATOR = Role(OPERATOR_ID, "tailgate", login=True, superuser=True)
PUBLIC = Role(PUBLIC_ID, "public", grants={SCHEMA_ID: frozenset({"USAGE"})})
BUILT_IN: Mapping[int, Role] = {PUBLIC_ID: PUBLIC, OPERATOR_ID: OPERATOR}
