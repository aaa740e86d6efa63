"""Parses CREATE SEQUENCE and the options of sequences.

Source: PostgreSQL 15, "CREATE SEQUENCE"; gram.y, SeqOptElem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import resolve
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import CreateSequence, SequenceOptions
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name

NUMBERS = {"increment": "increment", "minvalue": "minimum", "maxvalue": "maximum", "start": "start", "cache": "cache"}


def create_sequence(cursor: Parser) -> CreateSequence:
    """Parses the rest of CREATE SEQUENCE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    return CreateSequence(this, sequence_options(cursor), absent)


def sequence_options(cursor: Parser) -> SequenceOptions:
    """Parses the options of a sequence. Raises 42601 if one occurs twice."""
    result, names = SequenceOptions(), set[str]()
    while True:
        at, negated = cursor.position, cursor.at_word("no")
        word = cursor.peek().value if negated else cursor.token.value
        if cursor.token.kind != "word" or word not in (*NUMBERS, "as", "cycle", "owned"):
            return result
        if word in names:
            raise SyntaxError_("conflicting or redundant options", position=at)
        names.add(word)
        cursor.index += 2 if negated else 1
        if negated:
            if word not in ("minvalue", "maxvalue", "cycle"):
                raise cursor.error(cursor.tokens[cursor.index - 1])
            result = replace(result, cycle=False) if word == "cycle" else result
        elif word == "as":
            result = replace(result, type=resolve(type_name(cursor)))
        elif word == "cycle":
            result = replace(result, cycle=True)
        elif word == "owned":
            cursor.expect_word("by")
            result = replace(result, owner=_owner(cursor))
        else:
            cursor.any_word({"increment": "by", "start": "with"}.get(word, ""))
            number: Any = {NUMBERS[word]: _number(cursor)}
            result = replace(result, **number)


def _number(cursor: Parser) -> int:
    """Parses an integer with an optional sign."""
    sign = -1 if cursor.accept("-") else 1
    if sign > 0:
        cursor.accept("+")
    return sign * cursor.integer()


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
