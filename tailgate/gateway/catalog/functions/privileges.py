"""PostgreSQL's functions about roles and privileges, such as has_table_privilege()."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tailgate.gateway.catalog.functions.context import FunctionContext, FunctionGroup
from tailgate.gateway.catalog.functions.identifiers import IdentifierFunctions
from tailgate.gateway.catalog.relations.access_lists import quoted_role
from tailgate.lake.catalog import Sequence, UserType
from tailgate.lake.catalog.roles import (
    COLUMN_PRIVILEGES,
    DATABASE_PRIVILEGES,
    PUBLIC_ID,
    RELATION_PRIVILEGES,
    SCHEMA_PRIVILEGES,
    SEQUENCE_PRIVILEGES,
    TYPE_PRIVILEGES,
    Role,
)
from tailgate.lake.catalog.schemas import DATABASE, SYSTEM
from tailgate.lake.errors import (
    InvalidCatalogName,
    InvalidParameterValue,
    InvalidTextRepresentation,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.types import ARRAYS_OF_NAMED

# letters of access lists, in PostgreSQL's order
LETTERS = {
    "a": "INSERT", "r": "SELECT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES", "t": "TRIGGER", "X": "EXECUTE",
    "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT", "s": "SET", "A": "ALTER SYSTEM",
}  # fmt: skip
# by kind of objects: the privileges of everyone and of the owner
DEFAULTS = {
    "r": ("", "arwdDxt"), "s": ("", "rwU"), "d": ("Tc", "CTc"), "f": ("X", "X"), "l": ("U", "U"), "L": ("", "rw"), "n": ("", "UC"),
    "t": ("", "C"), "F": ("", "U"), "S": ("", "U"), "T": ("U", "U"), "p": ("", "sA"), "c": ("", ""),
}  # fmt: skip
ACL_ITEM = re.compile(r'((?:"(?:[^"]|"")*"|[^="]*))=([a-zA-Z*]*)/((?:"(?:[^"]|"")*"|[^"]*))')
GRANT_OPTION = " WITH GRANT OPTION"
MEMBERSHIP = [f"{word}{option}" for word in ("MEMBER", "USAGE") for option in ("", " WITH ADMIN OPTION", " WITH GRANT OPTION")]
# the privileges of everyone on the databases that only pg_database shows, by name and oid
OTHER_DATABASES = {
    **dict.fromkeys(("template1", "1", "template0", "4"), frozenset(("CONNECT",))),
    **dict.fromkeys(("postgres", "5"), frozenset(("CONNECT", "TEMPORARY"))),
}
OID_DIGITS_MAX = 10
SECRET = {"pg_authid": "table", "pg_shadow": "view"}  # catalog relations that only superusers may read


def _is_number(text: str) -> bool:
    """Returns whether a text may be an oid or the number of a column."""
    return text.isdecimal() and len(text) <= OID_DIGITS_MAX


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _privileges(text: str, valid: Iterable[str]) -> list[str]:
    """Parses a list of privileges, each of which may have GRANT OPTION. Raises 22023 for an unknown one."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word.upper().removesuffix(GRANT_OPTION) not in valid:
            raise InvalidParameterValue(f'unrecognized privilege type: "{word}"')
    return [word.upper() for word in words]


class Privileges(FunctionGroup):
    """The privilege functions. `names` converts names to oids."""

    def __init__(self, context: FunctionContext, names: IdentifierFunctions) -> None:
        super().__init__(context)
        self.regclass_in, self.regtype_in, self.regnamespace_in = names.regclass_in, names.regtype_in, names.regnamespace_in

    def _role(self, role: str | None) -> Role:
        """Returns the role with a name or an oid; for None that of the session."""
        if role is None:
            return self._session.role
        catalog = self.facts.catalog
        if not catalog.has_roles:
            return self._session.role
        if _is_number(role) and int(role) in catalog.all_roles():
            return catalog.all_roles()[int(role)]
        return catalog.all_roles()[0] if role == "public" else catalog.role(role)

    def _holds(self, role: Role, words: Iterable[str], oid: int, columns: Collection[int] | None = None) -> bool:
        """Tells whether a role has one of the privileges, or with GRANT OPTION may grant it."""
        catalog = self.facts.catalog
        return any(catalog.may(role, word.removesuffix(GRANT_OPTION), oid, columns, grant=word.endswith(GRANT_OPTION)) for word in words)

    def has_table_privilege(self, role: str | None, relation: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges. Returns None for an oid that no relation has.

        All roles may read system relations, except those in SECRET.
        """
        return self._has(role, self.regclass_in(relation), _privileges(privileges, RELATION_PRIVILEGES), None)

    def has_any_column_privilege(self, role: str | None, relation: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges on the relation or a column. Returns None for an oid that no relation has."""
        return self._has(role, self.regclass_in(relation), _privileges(privileges, COLUMN_PRIVILEGES), ())

    def has_column_privilege(self, role: str | None, relation: str, column: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges on a column, by its name or number. Returns None for a missing number.

        Raises 42703 for a missing name.
        """
        oid = self.regclass_in(relation)
        words = _privileges(privileges, COLUMN_PRIVILEGES)
        item = self.facts.catalog.get(oid)
        if item is None:
            return self._has(role, oid, words, None)
        position = next((i for i, field in enumerate(item.columns) if field.name == column), None)
        if position is None and _is_number(column.removeprefix("-")):
            position = int(column) - 1
            if not 0 <= position < len(item.columns) or item.columns[position].is_dropped:
                return None
        if position is None or item.columns[position].is_dropped:
            raise UndefinedColumn(f'column "{column}" of relation "{item.name}" does not exist')
        return self._has(role, oid, words, (position,))

    def _has(self, role: str | None, oid: int, words: list[str], columns: Collection[int] | None) -> bool | None:
        grantee = self._role(role)
        if self.facts.catalog.get(oid) is not None:
            return self._holds(grantee, words, oid, columns)
        if oid not in self.facts.classes:
            return None
        secret = self.facts.classes[oid][0] in SECRET
        return grantee.superuser or ("SELECT" in words and not secret)

    def has_sequence_privilege(self, role: str | None, sequence: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges. Returns None for an oid without a relation. Raises 42809 for another relation."""
        oid = self.regclass_in(sequence)
        words = _privileges(privileges, SEQUENCE_PRIVILEGES)
        grantee, item = self._role(role), self.facts.catalog.items.get(oid)
        if item is None and oid not in self.facts.classes:
            return None
        if not isinstance(item, Sequence):
            raise WrongObjectType(f'"{self.facts.classes[oid][0] if item is None else item.name}" is not a sequence')
        return self._holds(grantee, words, oid)

    def has_schema_privilege(self, role: str | None, schema: str, privileges: str) -> bool:
        oid = self.regnamespace_in(schema)
        words = _privileges(privileges, SCHEMA_PRIVILEGES)
        grantee = self._role(role)
        if oid in self.facts.catalog.all_schemas() and oid not in SYSTEM:
            return self._holds(grantee, words, oid)
        return grantee.superuser or "USAGE" in words

    def has_database_privilege(self, role: str | None, database: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges. Returns None for an oid that no database has. Raises 3D000 for another name."""
        words = [re.sub(r"^TEMP\b", "TEMPORARY", word) for word in _privileges(privileges, (*DATABASE_PRIVILEGES, "TEMP"))]
        grantee = self._role(role)
        if database in (self._session.database, str(self._session.database_oid)):
            return self._holds(grantee, words, DATABASE.id)
        of_others = OTHER_DATABASES.get(database)
        if of_others is None and not database.isdecimal():
            raise InvalidCatalogName(f'database "{database}" does not exist')
        return None if of_others is None else grantee.superuser or not of_others.isdisjoint(words)

    def has_type_privilege(self, role: str | None, type: str, privileges: str) -> bool | None:
        """Tells whether a role has one of the privileges. Returns None for an oid that no type has. An array has those of its elements."""
        oid = self.regtype_in(type)
        words = _privileges(privileges, TYPE_PRIVILEGES)
        grantee, catalog = self._role(role), self.facts.catalog
        item = catalog.items.get(oid) or catalog.items.get(oid - ARRAYS_OF_NAMED)
        if isinstance(item, UserType):
            return self._holds(grantee, words, item.id)
        return None if oid not in self.facts.types else grantee.superuser or "USAGE" in words

    def has_parameter_privilege(self, role: str | None, privileges: str) -> bool:
        """Tells whether a role may SET the settings of superusers or ALTER SYSTEM, which only superusers may."""
        _privileges(privileges, ("SET", "ALTER SYSTEM"))
        return self._role(role).superuser

    def acl_entries(self, acl: list[str]) -> list[dict[str, object]]:
        """Returns the rows of aclexplode(): one for each privilege of an access list."""
        roles = {name: oid for oid, name in self.roles.items()} | {"": PUBLIC_ID}
        rows: list[dict[str, object]] = []
        for item in acl:
            match = ACL_ITEM.fullmatch(item)
            if match is None:
                raise InvalidTextRepresentation(f'invalid access list entry: "{item}"')
            grantee, grantor = (roles.get(_unquoted(name), int(name) if _is_number(name) else PUBLIC_ID) for name in match.group(1, 3))
            held = re.findall(r"(.)(\*?)", match[2])
            rows += [
                {"grantor": grantor, "grantee": grantee, "privilege_type": word, "is_grantable": option == "*"}
                for letter, word in LETTERS.items()
                for held_letter, option in held
                if held_letter == letter
            ]
        return rows

    def acldefault(self, kind: str, owner: int) -> list[str]:
        """Returns the access list of an object without GRANTs. Raises 22023 for an unknown kind of objects."""
        if kind not in DEFAULTS:
            raise InvalidParameterValue(f"unrecognized object type abbreviation: {kind}")
        name = self.roles.get(owner, str(owner))
        shown = quoted_role(name)
        everyone, own = DEFAULTS[kind]
        return [f"{grantee}={letters}/{shown}" for grantee, letters in (("", everyone), (shown, own)) if letters]

    def pg_has_role(self, role: str | None, of: str, privileges: str) -> bool:
        """Tells whether a role is a member of another.

        MEMBER (it may SET ROLE) and USAGE (it has the privileges) are the same, as all roles inherit.
        """
        words = [word.strip().upper() for word in privileges.split(",")]
        if any(word not in MEMBERSHIP for word in words):
            raise InvalidParameterValue(f'unrecognized privilege type: "{privileges}"')
        member, catalog = self._role(role), self.facts.catalog
        group = next((oid for oid, name in self.roles.items() if of in (name, str(oid))), None)
        if group is None and not of.isdecimal():
            raise UndefinedObject(f'role "{of}" does not exist')
        if member.superuser or group is None:
            return member.superuser
        return any(catalog.administers(member, group) if " WITH " in word else group in catalog.acting(member.id) for word in words)
