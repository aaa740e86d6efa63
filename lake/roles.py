"""Roles: who may sign in, and what each may do. Part of the catalog.

A lake without roles trusts whoever reaches it from its own machine. The first CREATE ROLE ends that: from then on there are the roles
that were made and OPERATOR, the superuser who is always there. What everybody may do is the grants of PUBLIC.

    may(catalog, role, privilege, object)   the owner and superusers: everything; others what was granted to them, to a role that they are
                                            members of, or to PUBLIC

Membership passes on what a role owns and was granted, at any depth; that it is a superuser or may log in it does not.

Source: PostgreSQL 15, chapter 22, "Database Roles"; section 5.7, "Privileges".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_ID = 2200  # PostgreSQL's oid of the schema public
PUBLIC_ID, OPERATOR_ID = 0, 10

# by kind of object, in the order and with the letters of PostgreSQL's access lists
RELATION_PRIVILEGES = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d"}
SCHEMA_PRIVILEGES = {"USAGE": "U", "CREATE": "C"}
CONNECTION_PRIVILEGES = {"USAGE": "U"}  # of secrets too


@dataclass(frozen=True, slots=True)
class Role:
    """`verifier`: of the password, in PostgreSQL's form of SCRAM-SHA-256; None without one. `grants`: object's id → privileges.
    `member_of`: ids of roles → whether it may make others their members too (ADMIN OPTION)."""

    id: int
    name: str
    login: bool = False
    superuser: bool = False
    verifier: str | None = field(default=None, repr=False)
    grants: Mapping[int, frozenset[str]] = field(default_factory=dict)
    member_of: Mapping[int, bool] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "login": self.login,
            "superuser": self.superuser,
            "verifier": self.verifier,
            "grants": {str(o): sorted(p) for o, p in self.grants.items()},
            **({"member_of": {str(r): admin for r, admin in self.member_of.items()}} if self.member_of else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Role:
        grants = {int(o): frozenset(p) for o, p in data["grants"].items()}
        return Role(**{**data, "grants": grants, "member_of": {int(r): admin for r, admin in data.get("member_of", {}).items()}})


OPERATOR = Role(OPERATOR_ID, "tailgate", login=True, superuser=True)
PUBLIC = Role(PUBLIC_ID, "public", grants={SCHEMA_ID: frozenset({"USAGE"})})
BUILT_IN: Mapping[int, Role] = {PUBLIC_ID: PUBLIC, OPERATOR_ID: OPERATOR}
