"""Parses the actions of ALTER TABLE that change the definition of a table.

Source: PostgreSQL 15, "ALTER TABLE"; gram.y, alter_table_cmd, RenameStmt.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import SyntaxError_
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.parsers.clauses import collation, if_not_exists, options
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.parsers.sequences import combined, generation, identity_options, sequence_options
from tailgate.sql.statements.parsers.tables.constraints import CONSTRAINTS, table_constraint
from tailgate.sql.statements.parsers.tables.create_table import added_column
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.tables import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterTable,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    Identity,
    RenameColumn,
    RenameConstraint,
    SetClustered,
    SetColumnStorage,
    SetDefault,
    SetIdentity,
    SetNullable,
    SetOwner,
    SetParameters,
    SetReplicaIdentity,
    SetType,
    TableAction,
    Toggle,
    ValidateConstraint,
    WithoutEffect,
)

# first words of actions
ACTIONS = (
    "add", "alter", "drop", "validate", "owner", "replica", "set logged", "set unlogged", "set without", "cluster", "enable", "disable",
    "force", "no force",
)  # fmt: skip
ROW_SECURITY = ("row", "level", "security")


def alter_table(cursor: Parser, table: Name, exists: bool) -> AlterTable | None:
    """Parses the actions, after the name of the table. Returns None and consumes nothing for other forms of ALTER TABLE."""
    if cursor.at_word("rename") and not cursor.at_word("rename", "to"):
        return AlterTable(table, (_rename(cursor),), exists)
    if not any(cursor.at_word(*words.split()) for words in ACTIONS) and not at_parameters(cursor):
        return None
    actions: list[TableAction] = []
    while True:
        actions += _actions(cursor, table)
        if not cursor.accept(","):
            return AlterTable(table, tuple(actions), exists)


def _rename(cursor: Parser) -> TableAction:
    """Parses RENAME [COLUMN] … and RENAME CONSTRAINT …"""
    cursor.expect_word("rename")
    constraint = cursor.accept_word("constraint")
    if not constraint:
        cursor.accept_word("column")
    old = names.name(cursor).name
    cursor.expect_word("to")
    new = names.name(cursor).name
    return RenameConstraint(old, new) if constraint else RenameColumn(old, new)


def _actions(cursor: Parser, table: Name) -> list[TableAction]:
    """Parses an action. ADD COLUMN with constraints is several."""
    at = cursor.position
    if cursor.accept_word("add"):
        if any(cursor.at_word(word) for word in CONSTRAINTS):
            return [AddConstraint(table_constraint(cursor))]
        cursor.accept_word("column")
        absent = if_not_exists(cursor)
        column, constraints = added_column(cursor, table)
        return [AddColumn(column, absent), *(AddConstraint(constraint, column.name if absent else "") for constraint in constraints)]
    if cursor.accept_word("alter"):
        return [_alter(cursor, at)]
    if cursor.accept_word("drop"):
        return [_drop(cursor)]
    if cursor.accept_word("validate", "constraint"):
        return [ValidateConstraint(names.name(cursor).name)]
    if (switched := _switch(cursor, at)) is not None:
        return [switched]
    if cursor.accept_word("owner", "to"):
        return [SetOwner(role_name(cursor).name)]
    if cursor.accept_word("replica", "identity"):
        return [_replica_identity(cursor)]
    if at_parameters(cursor):
        return [SetParameters(parameters(cursor))]
    if cursor.token.kind != "word":
        raise cursor.error()
    raise unsupported(f"ALTER TABLE … {cursor.token.text.upper()}, with other actions,", at)


def _switch(cursor: Parser, at: int) -> TableAction | None:
    """Parses ENABLE, DISABLE, [NO] FORCE, CLUSTER ON and SET with a word. Returns None and consumes nothing for others. Raises 0A000."""
    if cursor.accept_word("cluster", "on"):
        return SetClustered(names.name(cursor).name)
    if cursor.accept_word("set", "without", "cluster"):
        return SetClustered("")
    for words in ("set logged", "set unlogged", "set without oids"):
        if cursor.accept_word(*words.split()):
            return WithoutEffect(words.upper())
    for words in ("enable", "force"):
        if cursor.at_word(words, *ROW_SECURITY):
            raise unsupported("ROW LEVEL SECURITY", at, "Grant privileges on views that select the rows of a role.")
    for words in ("disable", "no force"):
        if cursor.accept_word(*words.split(), *ROW_SECURITY):
            return WithoutEffect(f"{words.upper()} ROW SECURITY")
    for words in ("enable", "enable always", "enable replica", "disable"):
        for kind in ("trigger", "rule"):
            if cursor.accept_word(*words.split(), kind):
                every = cursor.any_word("all", "user") if kind == "trigger" and words in ("enable", "disable") else None
                shown = f"{words} {kind}".upper()
                return Toggle(shown, names.name(cursor).name) if every is None else Toggle(f"{shown} {every.upper()}")
    return None


def at_parameters(cursor: Parser) -> bool:
    """Returns whether storage parameters are next. RETAIN HISTORY, alone, is an option of all stored items."""
    begins = (cursor.at_word("set") or cursor.at_word("reset")) and cursor.at("(", 1)
    return begins and (cursor.peek(2).value, cursor.peek(3).value) != ("retain", "history")


def parameters(cursor: Parser) -> tuple[tuple[str, str | None], ...]:
    """Parses SET (name [= value], …) and RESET (name, …). RESET has the values None."""
    reset = cursor.advance().value == "reset"
    at = cursor.index
    pairs = options(cursor, parameters=True)
    if any(not isinstance(value, str) or " " in name for name, value in pairs):
        raise unsupported("RETAIN HISTORY together with storage parameters", cursor.tokens[at].position, "Use two statements.")
    if reset and any(token.value == "=" for token in cursor.tokens[at : cursor.index]):
        raise SyntaxError_("RESET must not include values for parameters")
    return tuple((name, None if reset else str(value)) for name, value in pairs)


def _replica_identity(cursor: Parser) -> TableAction:
    """Parses the rest of REPLICA IDENTITY."""
    if cursor.accept_word("using", "index"):
        return SetReplicaIdentity("i", names.name(cursor).name)
    if cursor.accept_word("default"):
        return SetReplicaIdentity("d")
    if cursor.accept_word("nothing"):
        return SetReplicaIdentity("n")
    if cursor.accept_word("full"):
        return SetReplicaIdentity("f")
    raise cursor.error()


def _column_storage(cursor: Parser, column: str) -> TableAction | None:
    """Parses SET STATISTICS, SET STORAGE, SET COMPRESSION, SET (…) and RESET (…). Returns None and consumes nothing for others."""
    if at_parameters(cursor):
        return SetParameters(parameters(cursor), column)
    if cursor.accept_word("set", "statistics"):
        negative = cursor.accept("-")
        return SetColumnStorage(column, statistics=-cursor.integer() if negative else cursor.integer())
    if cursor.accept_word("set", "storage"):
        return SetColumnStorage(column, storage=names.name(cursor).name)
    if cursor.accept_word("set", "compression"):
        method = "default" if cursor.accept_word("default") else names.name(cursor).name
        return SetColumnStorage(column, compression=method)
    return None


def _drop(cursor: Parser) -> TableAction:
    """Parses the rest of DROP CONSTRAINT and DROP [COLUMN]."""
    constraint = cursor.accept_word("constraint")
    if not constraint:
        cursor.accept_word("column")
    exists = cursor.accept_word("if", "exists")
    name = names.name(cursor).name
    cascade = cursor.any_word("cascade", "restrict") == "cascade"
    return DropConstraint(name, exists, cascade) if constraint else DropColumn(name, exists, cascade)


def _alter(cursor: Parser, at: int) -> TableAction:
    """Parses the rest of ALTER [COLUMN]."""
    if cursor.at_word("constraint"):
        raise unsupported("ALTER TABLE … ALTER CONSTRAINT", at, "Drop the constraint, and add it again.")
    cursor.accept_word("column")
    column = names.name(cursor).name
    if cursor.accept_word("drop", "default"):
        return SetDefault(column, None)
    if cursor.accept_word("set", "default"):
        start = cursor.position
        cursor.expression()
        return SetDefault(column, cursor.since(start))
    if cursor.accept_word("drop", "not", "null"):
        return SetNullable(column, True)
    if cursor.accept_word("set", "not", "null"):
        return SetNullable(column, False)
    if cursor.accept_word("drop", "expression"):
        return DropExpression(column, cursor.accept_word("if", "exists"))
    if (storage := _column_storage(cursor, column)) is not None:
        return storage
    if (identity := _identity(cursor, column)) is not None:
        return identity
    if cursor.accept_word("type") or cursor.accept_word("set", "data", "type"):
        type_at = cursor.position
        type = named_type(type_name(cursor))
        collate = collation(cursor, type)
        if not cursor.accept_word("using"):
            return SetType(column, type, type_position=type_at, collation=collate)
        start = cursor.position
        tree = cursor.expression()
        casts = isinstance(tree, exp.Cast) and _is_column(tree.this, column) and named_type(tree.args["to"]) == type
        return SetType(column, type, cursor.since(start), start, type_at, casts=casts, collation=collate)
    if cursor.token.kind == "end":
        raise cursor.error()
    words = f"{cursor.token.text} {cursor.peek().text}".upper().strip()
    raise unsupported(f"ALTER TABLE … ALTER COLUMN … {words}", at)


def _is_column(tree: exp.Expr, name: str) -> bool:
    return isinstance(tree, exp.Column) and tree.name == name and not tree.table


def _identity(cursor: Parser, column: str) -> TableAction | None:
    """Parses an action on the sequence of an identity column. Returns None and consumes nothing for other actions."""
    if cursor.accept_word("add", "generated"):
        generated = generation(cursor)
        cursor.expect_word("as", "identity")
        return AddIdentity(column, generated, identity_options(cursor))
    if cursor.accept_word("drop", "identity"):
        return DropIdentity(column, cursor.accept_word("if", "exists"))
    chosen, options = list[Identity](), SequenceOptions()
    while True:
        index = cursor.index
        if cursor.accept_word("set", "generated"):
            chosen.append(generation(cursor))
        elif cursor.at_word("restart") or cursor.accept_word("set"):
            added = sequence_options(cursor, altering=True)
            if added == SequenceOptions():
                cursor.index = index
                break
            options = combined(options, added)
        else:
            break
    if not chosen and options == SequenceOptions():
        return None
    if len(chosen) > 1:
        raise SyntaxError_("conflicting or redundant options")
    return SetIdentity(column, chosen[0] if chosen else None, options)
