"""Parses the constraints of tables and columns: CHECK, PRIMARY KEY, UNIQUE, FOREIGN KEY, REFERENCES.

Source: PostgreSQL 15, "CREATE TABLE"; gram.y, ColConstraintElem, ConstraintElem, ConstraintAttributeSpec.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.catalog.formats import ReferentialAction
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import column_names, relation_name
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.tables import Check, Constraint, ForeignKey, Unique

CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign", "exclude")  # words that begin a constraint of a table
ACTIONS: dict[ReferentialAction, tuple[str, ...]] = {
    "no action": ("no", "action"),
    "restrict": ("restrict",),
    "cascade": ("cascade",),
    "set null": ("set", "null"),
    "set default": ("set", "default"),
}


def table_constraint(cursor: Parser) -> Constraint:
    """Parses [CONSTRAINT name] constraint, at one of the words of CONSTRAINTS."""
    at = cursor.position
    name = names.name(cursor).name if cursor.accept_word("constraint") else None
    if cursor.accept_word("check"):
        return check(cursor, name)
    if cursor.accept_word("primary", "key"):
        return unique(cursor, name, at, (), primary=True)
    if cursor.accept_word("unique"):
        return unique(cursor, name, at, ())
    if cursor.accept_word("foreign", "key"):
        columns = column_names(cursor)
        cursor.expect_word("references")
        return references(cursor, name, at, columns)
    if cursor.at_word("exclude"):
        raise unsupported("EXCLUDE of a table", cursor.position)
    raise cursor.error()


def column_constraint(cursor: Parser, column: str, name: str | None) -> Constraint | None:
    """Parses a constraint of a column, after [CONSTRAINT name]. Returns None if there is none."""
    at = cursor.position
    if cursor.accept_word("check"):
        return check(cursor, name)
    if cursor.accept_word("primary", "key"):
        return unique(cursor, name, at, (column,), primary=True)
    if cursor.accept_word("unique"):
        return unique(cursor, name, at, (column,))
    if cursor.accept_word("references"):
        return references(cursor, name, at, (column,))
    return None


def check(cursor: Parser, name: str | None) -> Check:
    """Parses (expression) and the attributes, after CHECK."""
    cursor.expect("(")
    start = cursor.position
    cursor.expression()
    text = cursor.since(start)
    cursor.expect(")")
    attributes = _attributes(cursor, "CHECK")
    return Check(name, text, start, attributes.valid)


def unique(cursor: Parser, name: str | None, at: int, columns: tuple[str, ...], *, primary: bool = False) -> Unique:
    """Parses [NULLS [NOT] DISTINCT] [(columns) | USING INDEX index], after UNIQUE or PRIMARY KEY.

    `columns`: that of a column constraint.
    """
    distinct = True
    if not primary and cursor.accept_word("nulls"):
        distinct = not cursor.accept_word("not")
        cursor.expect_word("distinct")
    index = None
    if not columns and cursor.accept_word("using", "index"):
        index = names.name(cursor).name
    elif not columns:
        columns = column_names(cursor)
    if cursor.at_word("include"):
        raise unsupported("INCLUDE of a constraint", cursor.position, "Create an index with these columns.")
    attributes = _attributes(cursor, "PRIMARY KEY" if primary else "UNIQUE")
    return Unique(name, columns, at, primary, distinct, attributes.deferrable, attributes.deferred, index)


def references(cursor: Parser, name: str | None, at: int, columns: tuple[str, ...]) -> ForeignKey:
    """Parses table [(columns)] [MATCH …] [ON DELETE … [(columns)]] [ON UPDATE …], after REFERENCES."""
    table = relation_name(cursor)
    referenced = column_names(cursor) if cursor.at("(") else ()
    here, match = cursor.position, None
    if cursor.accept_word("match"):
        match = cursor.any_word("full", "partial", "simple")
        if match is None:
            raise cursor.error()
    if match == "partial":
        raise FeatureNotSupported("MATCH PARTIAL not yet implemented", position=here)
    actions: dict[str, ReferentialAction] = {}
    set_columns: tuple[str, ...] = ()
    here = cursor.position
    while cursor.accept_word("on"):
        event = "delete" if cursor.accept_word("delete") else "update"
        if event == "update":
            cursor.expect_word("update")
        if event in actions:
            raise cursor.error()
        actions[event] = _action(cursor)
        if actions[event].startswith("set") and cursor.at("("):
            if event == "update":
                message = f"a column list with {actions[event].upper()} is only supported for ON DELETE actions"
                raise FeatureNotSupported(message, position=here)
            set_columns = column_names(cursor)
        here = cursor.position
    attributes = _attributes(cursor, "FOREIGN KEY")
    on_delete, on_update = actions.get("delete", "no action"), actions.get("update", "no action")
    return ForeignKey(
        name,
        columns,
        table,
        referenced,
        at,
        on_delete,
        on_update,
        attributes.deferrable,
        attributes.deferred,
        attributes.valid,
        set_columns,
        match == "full",
    )


def _action(cursor: Parser) -> ReferentialAction:
    action = next((action for action, words in ACTIONS.items() if cursor.accept_word(*words)), None)
    if action is None:
        raise cursor.error()
    return action


@dataclass(slots=True)
class _Attributes:
    deferrable: bool = False
    deferred: bool = False
    valid: bool = True


def _attributes(cursor: Parser, constraint: str) -> _Attributes:
    """Parses [NOT] DEFERRABLE, INITIALLY {DEFERRED | IMMEDIATE}, NOT VALID and NO INHERIT, in any order."""
    attributes, immediate = _Attributes(), False
    while True:
        at = cursor.position
        if cursor.accept_word("not", "deferrable"):
            immediate = True
            if attributes.deferred:
                raise SyntaxError_("constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=at)
        elif cursor.accept_word("deferrable"):
            attributes.deferrable = True
        elif cursor.accept_word("initially", "deferred"):
            if immediate:
                raise SyntaxError_("constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=at)
            attributes.deferrable = attributes.deferred = True
        elif cursor.accept_word("not", "valid"):
            if constraint in ("PRIMARY KEY", "UNIQUE"):
                raise SyntaxError_(f"{constraint} constraints cannot be marked NOT VALID", position=at)
            attributes.valid = False
        elif constraint == "CHECK" and cursor.accept_word("no", "inherit"):
            pass
        elif not cursor.accept_word("initially", "immediate"):
            break
        if constraint == "CHECK" and attributes.deferrable:
            raise SyntaxError_("CHECK constraints cannot be marked DEFERRABLE", position=at)
    return attributes
