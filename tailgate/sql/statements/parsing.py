"""Parses a text into statements. The first words select the parser for the rest."""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import SyntaxError_
from tailgate.sql.grammar import queries
from tailgate.sql.statements import altered, connections, copying, kafka, objects, reading, roles, session, subscriptions, tables
from tailgate.sql.statements.every import Statement
from tailgate.sql.statements.pieces import select
from tailgate.sql.statements.refused import refuse
from tailgate.sql.statements.values import Empty, StatementText
from tailgate.sql.tokens import Cursor, Token, tokens


def _delete(cursor: Cursor) -> Statement:
    return kafka.delete_dead_letters(cursor) if cursor.at_word("delete", "dead", "letters") else tables.delete(cursor)


STATEMENTS: dict[str, Callable[[Cursor], Statement]] = {
    "create": objects.create,
    "alter": objects.alter,
    "comment": altered.comment,
    "drop": objects.drop,
    "grant": roles.grant,
    "revoke": roles.revoke,
    "show": objects.show,
    "explain": objects.explain,
    "pause": kafka.pause,
    "resume": kafka.pause,
    "retry": kafka.retry,
    "print": kafka.print_,
    "validate": connections.validate,
    "tail": reading.tail,
    "subscribe": reading.subscribe,
    "declare": reading.declare,
    "fetch": reading.fetch,
    "move": reading.fetch,
    "close": reading.close,
    "acknowledge": subscriptions.acknowledge,
    "copy": copying.copy,
    "insert": tables.insert,
    "update": tables.update,
    "delete": _delete,
    "truncate": tables.truncate,
    "begin": session.begin,
    "start": session.begin,
    "commit": session.commit,
    "end": session.commit,
    "rollback": session.rollback,
    "abort": session.rollback,
    "savepoint": session.savepoint,
    "release": session.release,
    "set": session.set_,
    "reset": session.reset,
    "discard": session.discard,
    "prepare": session.prepare,
    "execute": session.execute,
    "deallocate": session.deallocate,
}


def split(text: str) -> tuple[StatementText, ...]:
    """Splits a text at semicolons outside of quotes and comments. Leaves out empty statements.

    >>> [s.text for s in split("SELECT ';'; -- one; two\\nSHOW ALL;")]
    ["SELECT ';'", 'SHOW ALL']
    """
    found: list[StatementText] = []
    row: list[Token] = []
    for token in tokens(text):
        if token.kind == "end" or (token.kind == "operator" and token.value == ";"):
            if row:
                found.append(StatementText(text[row[0].position : row[-1].end], row[0].position, token.kind != "end"))
            row = []
        else:
            row.append(token)
    if row:
        found.append(StatementText(text[row[0].position :], row[0].position))
    return tuple(found)


def parse(text: str | StatementText) -> Statement:
    """Parses a text with one statement, optionally followed by semicolons.

    Positions in errors count from the start of this text. Returns Empty for a blank text.

    >>> parse("TAIL v WITH (progress)").progress
    True
    """
    if isinstance(text, StatementText):
        text = text.text + ";" * text.terminated
    cursor = Cursor(text)
    while cursor.sign(";"):
        pass
    if cursor.row[cursor.index].kind == "end":
        return Empty()
    found = statement(cursor)
    if not cursor.at(";"):
        cursor.finish()
    while cursor.sign(";"):
        pass
    if not cursor.finished:
        raise SyntaxError_("cannot insert multiple commands into a prepared statement", position=cursor.position)
    return found


def statement(cursor: Cursor) -> Statement:
    """Parses the statement at the cursor."""
    token = cursor.token
    if cursor.at_word("with") and (written := tables.after_with(cursor)) is not None:
        return written
    if queries.at_query(cursor) or cursor.at("("):
        return select(cursor)
    reader = STATEMENTS.get(token.value) if token.kind == "word" else None
    if reader is None:
        refuse(cursor)
        raise cursor.error()
    return reader(cursor)
