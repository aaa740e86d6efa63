"""Parses statements about roles and privileges: CREATE, ALTER and DROP ROLE, GRANT, REVOKE.

Source: PostgreSQL 15, "CREATE ROLE", "GRANT", "REVOKE"; src/backend/parser/gram.y.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import ATTRIBUTES, COLUMN_PRIVILEGES, PRIVILEGES_OF, RELATION_PRIVILEGES, SEQUENCE_PRIVILEGES
from tailgate.lake.errors import FeatureNotSupported, InvalidGrantOperation, InvalidParameterValue, ReservedName, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import relation_name, signed_integer
from tailgate.sql.statements.parsers.roles.settings import alter_settings
from tailgate.sql.statements.session_statements import (
    AlterRole,
    AlterSettings,
    CreateRole,
    DropOwned,
    DropRole,
    Grant,
    GrantKind,
    GrantRole,
    ReassignOwned,
    RoleOptions,
)

OfColumns: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]  # as of `Grant.of_columns`

KINDS = ("role", "user", "group")
INT4_MAX = (1 << 31) - 1
MEMBERSHIPS = {"in": "in_roles", "role": "members", "user": "members", "admin": "admins"}
PRIVILEGES = (
    "select", "insert", "update", "delete", "truncate", "references", "trigger", "usage", "create", "execute", "connect", "temporary",
    "temp",
)  # fmt: skip
OTHER_PRIVILEGES = ("set", "alter")
KINDS_BY_WORD: tuple[GrantKind, ...] = ("database", "schema", "secret", "connection", "endpoint", "type", "domain", "sequence")
OTHER_OBJECTS = (
    "foreign", "function", "language", "large", "parameter", "procedure", "routine", "tablespace"
)  # fmt: skip
SESSION_ROLES = ("current_user", "current_role", "session_user")


def _at_session_role(cursor: Parser) -> bool:
    return cursor.token.kind == "word" and cursor.token.value in SESSION_ROLES


def role_name(cursor: Parser) -> Name:
    """Parses the name of a role, or a word for one of the session's roles (`statements.parsing.with_session_roles`)."""
    at = cursor.position
    cursor.role_names[at] = cursor.token
    if _at_session_role(cursor):
        return Name(cursor.advance().value, None, at)
    return Name(name(cursor).name, None, at)


def _new_name(cursor: Parser) -> Name:
    """Parses the name that a role gets. Raises 42939 for a word for one of the session's roles."""
    if _at_session_role(cursor):
        raise ReservedName(f"{cursor.token.value.upper()} cannot be used as a role name here", position=cursor.position)
    at = cursor.position
    return Name(name(cursor).name, None, at)


def _dropped_name(cursor: Parser) -> Name:
    """Parses the name of a role for DROP ROLE. Raises 22023 for a word for one of the session's roles."""
    if _at_session_role(cursor):
        raise InvalidParameterValue("cannot use special role specifier in DROP ROLE")
    return role_name(cursor)


def create_role(cursor: Parser) -> CreateRole:
    """Parses {ROLE | USER | GROUP} name [WITH] options, after CREATE. A user is a role with LOGIN."""
    _refuse_user_mapping(cursor, "CREATE")
    login = cursor.any_word(*KINDS) == "user"
    this = _new_name(cursor)
    cursor.accept_word("with")
    role_options = _options(cursor, new=True)
    return CreateRole(this, replace(role_options, login=login) if login and role_options.login is None else role_options)


def alter_role(cursor: Parser) -> AlterRole | AlterSettings:
    """Parses {ROLE | USER | GROUP} {name | ALL} {[WITH] options | [IN DATABASE name] {SET … | RESET …}}, after ALTER."""
    _refuse_user_mapping(cursor, "ALTER")
    kind = cursor.advance().text.upper()
    this = None if cursor.accept_word("all") else role_name(cursor)
    database = name(cursor).name if cursor.accept_word("in", "database") else ""
    if this is None or database or cursor.at_word("set") or cursor.at_word("reset"):
        return alter_settings(cursor, this, database)
    if cursor.accept_word("rename", "to"):
        return AlterRole(this, rename=_new_name(cursor))
    if cursor.at_word("add") or cursor.at_word("drop"):
        hint = "Use GRANT and REVOKE."
        raise FeatureNotSupported(f"ALTER {kind} … {cursor.token.text.upper()} is not supported", hint=hint, position=cursor.position)
    cursor.accept_word("with")
    return AlterRole(this, _options(cursor))


def drop_role(cursor: Parser) -> DropRole:
    """Parses {ROLE | USER | GROUP} [IF EXISTS] name, …, after DROP."""
    _refuse_user_mapping(cursor, "DROP")
    cursor.any_word(*KINDS)
    exists = cursor.accept_word("if", "exists")
    names = cursor.listed(_dropped_name)
    return DropRole(tuple(names), exists)


def _refuse_user_mapping(cursor: Parser, verb: str) -> None:
    """Raises 0A000 for USER MAPPING FOR, which is not about roles."""
    if cursor.at_word("user", "mapping", "for") or cursor.at_word("user", "mapping", "if"):
        raise FeatureNotSupported(f"{verb} USER MAPPING is not supported", position=cursor.position)


def _options(cursor: Parser, *, new: bool = False) -> RoleOptions:
    """Parses the options of a role. `new`: those of CREATE ROLE, which has more."""
    fields: dict[str, Any] = {}
    words: set[str] = set()
    while cursor.token.kind == "word":
        at, word = cursor.position, cursor.token.value
        if word in ("noinherit", "sysid"):
            hint = "A member always has the privileges of its roles." if word == "noinherit" else None
            raise FeatureNotSupported(f"role option {word.upper()} is not supported", hint=hint, position=at)
        cursor.advance()
        if word == "encrypted":
            cursor.expect_word("password")
            word = "password"
        elif word == "unencrypted":
            raise FeatureNotSupported(
                "UNENCRYPTED PASSWORD is no longer supported",
                hint="Remove UNENCRYPTED to store the password in encrypted form instead.",
                position=at,
            )
        option = word.removeprefix("no") if word.removeprefix("no") in ATTRIBUTES else MEMBERSHIPS.get(word, word)
        if option in words:
            raise SyntaxError_("conflicting or redundant options", position=at)
        words.add(option)
        fields |= _fields(word, option, cursor, at, new=new)
    return RoleOptions(**fields)


def _fields(word: str, option: str, cursor: Parser, at: int, *, new: bool) -> dict[str, Any]:
    """Parses an option after its first word, and returns the fields that it sets. Raises 42601, and 22023 for a limit below -1."""
    token = cursor.token
    match option:
        case "inherit":  # the default
            return {}
        case _ if option in ATTRIBUTES:
            return {option: word == option}
        case "password":
            password = None if cursor.accept_word("null") else cursor.string()
            return {"password": password, "sets_password": True, "password_at": (token.position, token.end)}
        case "connection":
            cursor.expect_word("limit")
            if (limit := signed_integer(cursor, INT4_MAX)) < -1:
                raise InvalidParameterValue(f"invalid connection limit: {limit}")
            return {"connection_limit": limit}
        case "valid":
            cursor.expect_word("until")
            token = cursor.token
            return {"until": cursor.string(), "until_at": (token.position, token.end)}
        case _ if new and word in MEMBERSHIPS:
            if word == "in" and cursor.any_word("role", "group") is None:
                raise cursor.error()
            return {option: tuple(cursor.listed(role_name))}
        case _:
            raise SyntaxError_(f'unrecognized role option "{word}"', position=at)


def grant(cursor: Parser) -> Grant | GrantRole:
    """Parses GRANT."""
    return _grant(cursor, "grant")


def revoke(cursor: Parser) -> Grant | GrantRole:
    """Parses REVOKE."""
    return _grant(cursor, "revoke")


def _names_roles(cursor: Parser) -> bool:
    """Returns whether the statement grants roles and not privileges: TO or FROM occurs before any ON."""
    for token in cursor.tokens[cursor.index :]:
        if token.kind == "word" and token.value in ("to", "from", "on"):
            return token.value != "on"
    return False


def _membership(cursor: Parser, verb: Literal["grant", "revoke"], *, admin: bool) -> GrantRole:
    """Parses role, … {TO | FROM} member, …"""
    roles = cursor.listed(role_name)
    cursor.expect_word("to" if verb == "grant" else "from")
    members = cursor.listed(role_name)
    if verb == "grant":
        admin = cursor.accept_word("with", "admin", "option")
    if cursor.at_word("granted", "by"):
        raise FeatureNotSupported(f"{verb.upper()} … GRANTED BY is not supported", position=cursor.position)
    if verb == "revoke":
        cursor.any_word("cascade", "restrict")
    return GrantRole(verb == "grant", tuple(roles), tuple(members), admin)


def _grant(cursor: Parser, verb: Literal["grant", "revoke"]) -> Grant | GrantRole:
    """Parses GRANT or REVOKE, which differ in a few key words."""
    cursor.expect_word(verb)
    if verb == "revoke" and cursor.accept_word("admin", "option", "for"):
        return _membership(cursor, verb, admin=True)
    option = verb == "revoke" and cursor.accept_word("grant", "option", "for")
    if _names_roles(cursor) and not option:
        return _membership(cursor, verb, admin=False)
    privileges, of_columns, all = _privileges(cursor)
    cursor.expect_word("on")
    at = cursor.position
    if (other := cursor.any_word(*OTHER_OBJECTS)) is not None:
        raise FeatureNotSupported(f"{verb.upper()} ON {other.upper()} is not supported", position=at)
    kind: GrantKind = "relation"
    if cursor.accept_word("all"):
        what = cursor.any_word("tables", "sequences", "functions", "procedures", "routines")
        if what is None:
            raise cursor.error()
        if what not in ("tables", "sequences"):
            raise FeatureNotSupported(f"{verb.upper()} ON ALL {what.upper()} is not supported", position=at)
        cursor.expect_word("in", "schema")
        kind = "relations of a schema" if what == "tables" else "sequences of a schema"
    elif not cursor.accept_word("table"):
        kind = next((word for word in KINDS_BY_WORD if cursor.accept_word(word)), "relation")
    alone = kind in ("database", "schema", "relations of a schema", "sequences of a schema")  # names without a schema
    objects = cursor.listed(lambda cursor: Name(name(cursor).name, None, at) if alone else relation_name(cursor))
    cursor.expect_word("to" if verb == "grant" else "from")
    roles = cursor.listed(grantee)
    option = option or (verb == "grant" and cursor.accept_word("with", "grant", "option"))
    by = None
    if cursor.accept_word("granted", "by") and cursor.any_word("current_user", "current_role") is None:
        by = role_name(cursor)
    cascade = verb == "revoke" and cursor.any_word("cascade", "restrict") == "cascade"
    if of_columns and kind not in ("relation", "relations of a schema"):
        raise InvalidGrantOperation("column privileges are only valid for relations")
    one = kind.removesuffix("s of a schema")
    supported = PRIVILEGES_OF.get(one, RELATION_PRIVILEGES)
    for word in privileges:
        if word not in supported and not (one == "relation" and word in SEQUENCE_PRIVILEGES):
            raise _invalid(word, one)
    for word, _ in of_columns:
        if word not in COLUMN_PRIVILEGES:
            raise _invalid(word, "column")
    listed = tuple(supported) if all else privileges
    return Grant(verb == "grant", listed, kind, tuple(objects), tuple(roles), all, of_columns, option, cascade, by)


def owned(cursor: Parser) -> DropOwned | ReassignOwned:
    """Parses DROP OWNED BY role, … [CASCADE | RESTRICT], or REASSIGN OWNED BY role, … TO role."""
    drops = cursor.accept_word("drop")
    if not drops:
        cursor.expect_word("reassign")
    cursor.expect_word("owned", "by")
    names = tuple(cursor.listed(role_name))
    if drops:
        return DropOwned(names, cursor.any_word("cascade", "restrict") == "cascade")
    cursor.expect_word("to")
    return ReassignOwned(names, role_name(cursor))


def _invalid(privilege: str, kind: str) -> Exception:
    return InvalidGrantOperation(f"invalid privilege type {privilege} for {kind}")


def _privileges(cursor: Parser) -> tuple[tuple[str, ...], OfColumns, bool]:
    """Parses ALL [PRIVILEGES] or a list of privileges. Returns those on whole objects, those on columns, and whether it is ALL."""
    if cursor.accept_word("all"):
        cursor.accept_word("privileges")
        columns = _columns(cursor)
        return (), tuple((privilege, columns) for privilege in COLUMN_PRIVILEGES if columns), not columns
    listed = cursor.listed(lambda cursor: (privilege(cursor), _columns(cursor)))
    whole = tuple(privilege for privilege, columns in listed if not columns)
    return whole, tuple((privilege, columns) for privilege, columns in listed if columns), False


def _columns(cursor: Parser) -> tuple[str, ...]:
    """Parses [(column, …)]."""
    if not cursor.accept("("):
        return ()
    columns = cursor.listed(lambda cursor: name(cursor).name)
    cursor.expect(")")
    return tuple(columns)


def privilege(cursor: Parser) -> str:
    """Parses a privilege. Raises 0A000 if only PostgreSQL has it."""
    at = cursor.position
    if (other := cursor.any_word(*OTHER_PRIVILEGES)) is not None:
        raise FeatureNotSupported(f"privilege {other.upper()} is not supported", position=at)
    word = cursor.any_word(*PRIVILEGES)
    if word is not None:
        return "TEMPORARY" if word == "temp" else word.upper()
    raise SyntaxError_(f'unrecognized privilege type "{name(cursor).name}"', position=at)


def grantee(cursor: Parser) -> Name:
    """Parses [GROUP] role."""
    if cursor.at_word("group"):
        cursor.advance()
    return role_name(cursor)
