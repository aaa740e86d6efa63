"""Rejects statements of PostgreSQL and Materialize that Tailgate does not support.

The error names the statement, so that users do not search for a typo.
"""

from __future__ import annotations

from tailgate.lake.errors import DuplicateDatabase, FeatureNotSupported, TailgateError
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser

# first words → hint; the longest match counts
STATEMENTS: dict[tuple[str, ...], str | None] = {
    ("alter",): None,
    ("call",): None,
    ("import", "foreign", "schema"): None,
    ("load",): None,
    ("security", "label"): None,
    # Materialize
    ("raise",): None,
}

CREATIONS: dict[tuple[str, ...], str | None] = {
    ("foreign",): None,
    ("database",): None,
    ("cluster",): None,
    ("procedure",): None,
    ("aggregate",): None,
    ("operator",): None,
    ("unlogged", "sequence"): "Use CREATE SEQUENCE.",
    ("trigger",): None,
    ("rule",): None,
    ("extension",): None,
    ("cast",): None,
    ("collation",): None,
    ("policy",): None,
    ("publication",): None,
    ("server",): None,
    ("tablespace",): None,
    ("statistics",): None,
    ("language",): None,
    ("access", "method"): None,
    ("event", "trigger"): None,
    ("conversion",): None,
    ("transform",): None,
    ("text", "search"): None,
    ("or", "replace"): None,
}

SHOWINGS: dict[tuple[str, ...], str | None] = {
    ("clusters",): None,
    ("roles",): None,
}


POSTGRESQL = frozenset("alter call comment load".split())


def _longest_match(cursor: Parser, table: dict[tuple[str, ...], str | None]) -> tuple[str, ...] | None:
    """Returns the longest key of a table that the next words match, or None."""
    return max((words for words in table if cursor.at_word(*words)), key=len, default=None)


def unsupported(what: str, position: int, hint: str | None = None) -> TailgateError:
    """Returns the error 0A000 for a part of a statement."""
    return FeatureNotSupported(f"{what} is not supported", hint=hint, position=position)


def refuse(cursor: Parser) -> None:
    """Raises 0A000 if the next words begin an unsupported statement of another system."""
    words = _longest_match(cursor, STATEMENTS)
    # a single word such as `list` is a typo or an incomplete statement
    if words is not None and cursor.peek().kind == "end":
        raise cursor.error(cursor.peek() if words[0] in POSTGRESQL else None)
    if words is not None:
        what = [*words, cursor.peek().text] if words == ("alter",) and cursor.peek().kind == "word" else words
        raise unsupported(" ".join(what).upper(), cursor.position, STATEMENTS[words])


def refuse_create(cursor: Parser, start: int) -> TailgateError:
    """Returns the error for CREATE with an unsupported or unknown object."""
    if cursor.tokens[cursor.index - 1].value in ("source", "sink"):
        cursor.index -= 1
    words = _longest_match(cursor, CREATIONS)
    if words is None:
        return cursor.error()
    if words == ("database",):  # tools that create their database take 42P04 for success
        cursor.expect_word(*words)
        return DuplicateDatabase(
            f'database "{name(cursor).name}" already exists', hint="Tailgate has one database, to which clients connect by any name."
        )
    if words == ("or", "replace"):
        what = cursor.peek(2)
        return unsupported("CREATE OR REPLACE" + (" " + what.text.upper() if what.kind == "word" else ""), start, None)
    return unsupported("CREATE " + " ".join(words).upper(), start, CREATIONS[words])


def refuse_drop(cursor: Parser, start: int) -> TailgateError:
    """Returns the error for DROP with an unsupported or unknown object."""
    if cursor.at_word("routine"):
        return unsupported("DROP ROUTINE", start, "Use DROP FUNCTION.")
    words = _longest_match(cursor, CREATIONS)
    if words is None or words[0] in ("or", "recursive", "unlogged"):
        return cursor.error()
    return unsupported("DROP " + " ".join(words).upper(), start, None)


def refuse_show(cursor: Parser, position: int) -> None:
    """Raises 0A000 for an unsupported SHOW of another system."""
    words = _longest_match(cursor, SHOWINGS)
    if words is not None:
        raise unsupported("SHOW " + " ".join(words).upper(), position, SHOWINGS[words])
