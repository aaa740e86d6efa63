"""Parses DROP of kinds of objects that Tailgate does not have, which scripts send before they create something."""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import DropAbsent
from tailgate.sql.statements.parsers.clauses import relation_name
from tailgate.sql.statements.parsers.unsupported import unsupported

# words of a kind → the names of PostgreSQL's own objects
KINDS: dict[str, frozenset[str]] = {
    "access method": frozenset("heap btree hash gist gin spgist brin".split()),
    "collation": frozenset(("default", "C", "POSIX", "ucs_basic", "unicode")),
    "conversion": frozenset(),
    "database": frozenset(("postgres", "template0", "template1")),
    "event trigger": frozenset(),
    "extension": frozenset(("plpgsql",)),
    "foreign data wrapper": frozenset(),
    "foreign table": frozenset(),
    "language": frozenset(("c", "internal", "sql", "plpgsql")),
    "publication": frozenset(),
    "server": frozenset(),
    "statistics": frozenset(),
    "tablespace": frozenset(("pg_default", "pg_global")),
}
OF_RELATIONS = ("trigger", "rule", "policy")
QUALIFIED = ("collation", "conversion", "foreign table", "statistics")  # kinds whose objects are in schemas


def drop_absent(cursor: Parser) -> DropAbsent | None:
    """Parses kind [IF EXISTS] name, … [ON table] [CASCADE | RESTRICT], after DROP. Returns None and consumes nothing for other kinds.

    Raises 0A000 for an object that exists.
    """
    at = cursor.position
    kind = next((kind for kind in (*KINDS, *OF_RELATIONS) if cursor.at_word(*kind.split())), None)
    if kind is None:
        return None
    for _ in kind.split():
        cursor.advance()
    exists = cursor.accept_word("if", "exists")
    table = None
    if kind in OF_RELATIONS:
        names = [_name(cursor)]
        cursor.expect_word("on")
        table = relation_name(cursor)
    else:
        names = cursor.listed(relation_name if kind in QUALIFIED else _name)
    if any(each.name in KINDS.get(kind, ()) for each in names):
        raise unsupported(f"DROP {kind.upper()}", at)
    if kind == "database" and cursor.accept_word("with"):
        cursor.expect("(")
        cursor.expect_word("force")
        cursor.expect(")")
    elif kind not in ("database", "tablespace"):
        cursor.any_word("cascade", "restrict")
    return DropAbsent(kind, tuple(names), exists, table)


def _name(cursor: Parser) -> Name:
    return Name(name(cursor).name)
