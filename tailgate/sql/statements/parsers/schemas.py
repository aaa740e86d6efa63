"""Parses CREATE, ALTER and DROP SCHEMA.

Source: PostgreSQL 15, "CREATE SCHEMA", "ALTER SCHEMA", "DROP SCHEMA".
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import AlterSchema, CreateSchema, DropSchema
from tailgate.sql.statements.parsers.roles.roles import role_name


def schema_name(cursor: Parser) -> Name:
    """Parses the name of a schema."""
    at = cursor.position
    return Name(name(cursor).name, None, at)


def create_schema(cursor: Parser) -> CreateSchema:
    """Parses the rest of CREATE SCHEMA."""
    absent = cursor.accept_word("if", "not", "exists")
    this = None if cursor.at_word("authorization") else schema_name(cursor)
    owner = role_name(cursor) if cursor.accept_word("authorization") else None
    if cursor.token.kind == "word" and cursor.token.value in ("create", "grant"):
        if absent:
            raise FeatureNotSupported("CREATE SCHEMA IF NOT EXISTS cannot include schema elements", position=cursor.position)
        hint = "Create the schema first, then the objects in it."
        raise FeatureNotSupported("elements of a schema in CREATE SCHEMA are not supported", hint=hint, position=cursor.position)
    return CreateSchema(this, owner, absent)


def alter_schema(cursor: Parser) -> AlterSchema:
    """Parses the rest of ALTER SCHEMA."""
    this = schema_name(cursor)
    if cursor.accept_word("rename", "to"):
        return AlterSchema(this, rename=schema_name(cursor))
    if cursor.accept_word("owner", "to"):
        return AlterSchema(this, owner=role_name(cursor))
    raise cursor.error()


def drop_schema(cursor: Parser) -> DropSchema:
    """Parses the rest of DROP SCHEMA."""
    exists = cursor.accept_word("if", "exists")
    names = cursor.listed(schema_name)
    return DropSchema(tuple(names), exists, cursor.any_word("cascade", "restrict") == "cascade")
