"""Parses CREATE and ALTER SEQUENCE and the options of sequences.

Source: PostgreSQL 15, "CREATE SEQUENCE", "ALTER SEQUENCE"; gram.y, SeqOptElem.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import resolve
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import AlterSequence, CreateSequence, SequenceOptions
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name, signed_integer
from tailgate.sql.statements.tables import Identity

NUMBERS = {"increment": "increment", "minvalue": "minimum", "maxvalue": "maximum", "start": "start", "cache": "cache"}


def create_sequence(cursor: Parser, *, temporary: bool = False) -> CreateSequence:
    """Parses the rest of CREATE SEQUENCE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    return CreateSequence(this, sequence_options(cursor), absent, temporary)


def temporary_sequence(cursor: Parser) -> CreateSequence:
    """Parses the rest of CREATE TEMPORARY SEQUENCE."""
    return create_sequence(cursor, temporary=True)


def alter_sequence(cursor: Parser, sequence: Name, exists: bool) -> AlterSequence | None:
    """Parses the options, after the name of the sequence. Returns None and consumes nothing for other forms of ALTER SEQUENCE."""
    options = sequence_options(cursor, altering=True)
    return None if options == SequenceOptions() else AlterSequence(sequence, options, exists)


def generation(cursor: Parser) -> Identity:
    """Parses ALWAYS or BY DEFAULT, after GENERATED."""
    if cursor.accept_word("always"):
        return "always"
    cursor.expect_word("by", "default")
    return "by default"


def identity_options(cursor: Parser) -> SequenceOptions:
    """Parses [(options)] of an identity column."""
    if not cursor.accept("("):
        return SequenceOptions()
    settings = sequence_options(cursor, of_identity=True)
    cursor.expect(")")
    return settings


def sequence_options(cursor: Parser, *, altering: bool = False, of_identity: bool = False) -> SequenceOptions:
    """Parses the options of a sequence: RESTART if `altering`, SEQUENCE NAME if `of_identity`. Raises 42601 if one occurs twice."""
    result, names = SequenceOptions(), set[str]()
    others = ("as", "cycle", "owned", *(("restart",) if altering else ()), *(("sequence",) if of_identity else ()))
    while True:
        at, negated = cursor.position, cursor.at_word("no")
        word = cursor.peek().value if negated else cursor.token.value
        if cursor.token.kind != "word" or word not in (*NUMBERS, *others):
            return result
        if word in names:
            raise SyntaxError_("conflicting or redundant options", position=at)
        names.add(word)
        cursor.index += 2 if negated else 1
        if negated:
            if word not in ("minvalue", "maxvalue", "cycle"):
                raise cursor.error(cursor.tokens[cursor.index - 1])
            bounds = result.unbounded | {NUMBERS.get(word, "")}
            result = replace(result, cycle=False) if word == "cycle" else replace(result, unbounded=bounds)
        elif word == "as":
            result = replace(result, type=resolve(type_name(cursor)))
        elif word == "cycle":
            result = replace(result, cycle=True)
        elif word == "sequence":
            cursor.expect_word("name")
            result = replace(result, name=relation_name(cursor))
        elif word == "restart":
            result = replace(result, restarts=True, restart=signed_integer(cursor) if _at_number(cursor) else None)
        elif word == "owned":
            cursor.expect_word("by")
            result = replace(result, owner=_owner(cursor))
        else:
            cursor.any_word({"increment": "by", "start": "with"}.get(word, ""))
            number: Any = {NUMBERS[word]: signed_integer(cursor)}
            result = replace(result, **number)


def combined(first: SequenceOptions, second: SequenceOptions) -> SequenceOptions:
    """Returns the options of two lists."""
    empty, result = SequenceOptions(), first
    for option in fields(second):
        if (value := getattr(second, option.name)) != getattr(empty, option.name):
            joined: Any = {option.name: value | result.unbounded if option.name == "unbounded" else value}
            result = replace(result, **joined)
    return result


def _at_number(cursor: Parser) -> bool:
    """Returns whether a number follows, and skips WITH."""
    return cursor.accept_word("with") or cursor.token.kind == "integer" or cursor.at("-") or cursor.at("+")


def _owner(cursor: Parser) -> tuple[Name, str]:
    """Parses [schema.]table.column or NONE, after OWNED BY."""
    at = cursor.position
    parts = [name(cursor).name]
    while cursor.accept("."):
        parts.append(name(cursor).name)
    if parts == ["none"]:
        return Name("none", None, at), ""
    if len(parts) == 1:
        raise SyntaxError_("invalid OWNED BY option", hint="Specify OWNED BY table.column or OWNED BY NONE.")
    return Name(parts[-2], parts[-3] if len(parts) > 2 else None, at), parts[-1]
