"""Parses CREATE TABLE: columns with their types, defaults and sequences, and constraints.

Source: PostgreSQL 15, "CREATE TABLE"; gram.y, columnDef.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import InvalidTableDefinition, SyntaxError_, TailgateError
from tailgate.lake.types import INT2, INT4, INT8
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name, since, with_options
from tailgate.sql.statements.parsers.sequences import generation, identity_options
from tailgate.sql.statements.parsers.tables.constraints import CONSTRAINTS, column_constraint, table_constraint
from tailgate.sql.statements.parsers.tables.create_table_as import at_query_of_table, create_table_as, on_commit
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.tables import Check, Constraint, CreateTable, ForeignKey, Generation, Like, TableColumn, Unique
from tailgate.sql.statements.writes import CreateTableAs

# unsupported clauses of a column: first words → name and hint of the error
_REFUSED: dict[tuple[str, ...], tuple[str, str | None]] = {
    ("collate",): ("COLLATE", "Text is compared in C order."),
    ("compression",): ("COMPRESSION", None),
    ("storage",): ("STORAGE", None),
}
_BEHIND = {
    ("inherits",): "INHERITS",
    ("partition", "by"): "PARTITION BY",
    ("using",): "USING",
    ("tablespace",): "TABLESPACE",
}


LIKE_OPTIONS = (
    "comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage",
)  # fmt: skip

SERIAL = {
    "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8, "smallserial": INT2, "serial2": INT2,
}  # fmt: skip


class _Constraints:
    """The constraints of a table that are parsed so far."""

    def __init__(self, table: Name) -> None:
        self._table = table
        self.primary: Unique | None = None
        self.checks: list[Check] = []
        self.uniques: list[Unique] = []
        self.foreign_keys: list[ForeignKey] = []

    def add(self, constraint: Constraint) -> None:
        """Adds a constraint. Raises 42P16 for a second primary key."""
        match constraint:
            case Check():
                self.checks.append(constraint)
            case ForeignKey():
                self.foreign_keys.append(constraint)
            case Unique(primary=False):
                self.uniques.append(constraint)
            case Unique(position=at):
                if self.primary is not None:
                    raise InvalidTableDefinition(f'multiple primary keys for table "{self._table.name}" are not allowed', position=at)
                self.primary = constraint

    @property
    def all(self) -> tuple[Constraint, ...]:
        """Returns all constraints, the primary key first."""
        primary = () if self.primary is None else (self.primary,)
        return (*primary, *self.uniques, *self.checks, *self.foreign_keys)


def temporary_table(cursor: Parser) -> CreateTable | CreateTableAs:
    """Parses the rest of CREATE TEMPORARY TABLE."""
    return create_table(cursor, temporary=True)


def create_table(cursor: Parser, *, temporary: bool = False) -> CreateTable | CreateTableAs:
    """Parses the rest of CREATE TABLE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("of") or cursor.at_word("partition", "of"):
        raise unsupported("CREATE TABLE … " + ("OF" if cursor.at_word("of") else "PARTITION OF"), cursor.position)
    if at_query_of_table(cursor):
        return create_table_as(cursor, this, absent, temporary=temporary)
    cursor.expect("(")
    columns: list[TableColumn] = []
    likes: list[Like] = []
    constraints = _Constraints(this)
    if not cursor.at(")"):
        while True:
            if cursor.accept_word("like"):
                likes.append(_like(cursor, len(columns)))
            elif any(cursor.at_word(word) for word in CONSTRAINTS):
                constraints.add(table_constraint(cursor))
            else:
                columns.append(_column(cursor, this, constraints))
            if not cursor.accept(","):
                break
    cursor.expect(")")
    settings, clause = with_options(cursor)
    end_of_transaction = on_commit(cursor, temporary=temporary)
    for words, what in _BEHIND.items():
        if cursor.at_word(*words):
            raise unsupported(what, cursor.position)
    key = constraints.primary or Unique(None, (), 0)
    return CreateTable(
        this,
        tuple(columns),
        key.columns,
        key.name,
        absent,
        None if constraints.primary is None else key.position,
        tuple(constraints.checks),
        settings,
        clause,
        tuple(constraints.uniques),
        tuple(constraints.foreign_keys),
        temporary,
        end_of_transaction,
        tuple(likes),
    )


def _like(cursor: Parser, place: int) -> Like:
    """Parses the relation and the options, after LIKE."""
    relation, including = relation_name(cursor), set[str]()
    while (word := cursor.any_word("including", "excluding")) is not None:
        option = cursor.any_word(*LIKE_OPTIONS, "all")
        if option is None:
            raise cursor.error()
        options = LIKE_OPTIONS if option == "all" else (option,)
        including = including | {*options} if word == "including" else including - {*options}
    return Like(relation, place, frozenset(including))


def added_column(cursor: Parser, table: Name) -> tuple[TableColumn, tuple[Constraint, ...]]:
    """Parses a column of ALTER TABLE … ADD COLUMN. Returns its constraints, too."""
    constraints = _Constraints(table)
    return _column(cursor, table, constraints), constraints.all


def _column(cursor: Parser, table: Name, constraints: _Constraints) -> TableColumn:
    """Parses a column. Its constraints, except NOT NULL, go to `constraints`."""
    at = cursor.position
    this = names.name(cursor).name
    serial = SERIAL.get(cursor.token.value) if cursor.token.kind == "word" else None
    if serial is not None:
        cursor.advance()
    type_at = cursor.position
    type = serial or named_type(type_name(cursor))
    generated: Generation | None = None if serial is None else "serial"
    settings: SequenceOptions | None = None
    nullable: bool | None = None if serial is None else False
    default: str | None = None
    default_at: int | None = None
    expression: str | None = None
    constraint: str | None = None
    while True:
        here = cursor.position
        if cursor.accept_word("constraint"):
            constraint = names.name(cursor).name
        elif cursor.accept_word("not", "null"):
            if nullable is True:
                raise _conflicting(this, table, here)
            nullable = False
        elif cursor.accept_word("null"):
            if nullable is False:
                raise _conflicting(this, table, here if serial is None else None)
            nullable = True
        elif cursor.accept_word("default"):
            if default is not None or generated == "serial":
                raise _syntax(
                    f'multiple default values specified for column "{this}" of table "{table.name}"', here if serial is None else None
                )
            if expression is not None:
                raise _both("default and generation expression", this, table, here)
            if generated is not None:
                raise _both("default and identity", this, table, here)
            start = default_at = cursor.position
            cursor.expression(boolean=False)
            default = since(cursor, start)
        elif cursor.accept_word("generated"):
            kind = generation(cursor)
            cursor.expect_word("as")
            if cursor.accept("("):
                if kind != "always":
                    raise _syntax("for a generated column, GENERATED ALWAYS must be specified", here + len("GENERATED "))
                if expression is not None:
                    raise _syntax(f'multiple generation clauses specified for column "{this}" of table "{table.name}"', here)
                if default is not None or serial is not None:
                    raise _both("default and generation expression", this, table, here if serial is None else None)
                if generated is not None:
                    raise _both("identity and generation expression", this, table, here)
                expression, default_at = _stored_expression(cursor)
                continue
            cursor.expect_word("identity")
            if generated is not None and generated != "serial":
                raise _syntax(f'multiple identity specifications for column "{this}" of table "{table.name}"', here)
            if default is not None or serial is not None:
                raise _both("default and identity", this, table, here if serial is None else None)
            if expression is not None:
                raise _both("identity and generation expression", this, table, here)
            generated, settings = kind, identity_options(cursor)
            if nullable is True:
                raise _conflicting(this, table, here)
            nullable = False
        elif (parsed := column_constraint(cursor, this, constraint)) is not None:
            constraints.add(parsed)
            constraint = None
        else:
            refused = next((words for words in _REFUSED if cursor.at_word(*words)), None)
            if refused is not None:
                what, hint = _REFUSED[refused]
                raise unsupported(f"{what} of a column", here, hint)
            return TableColumn(this, type, nullable is not False, default, at, default_at, generated, settings, type_at, expression)


def _stored_expression(cursor: Parser) -> tuple[str, int]:
    """Parses the rest of (expression) STORED. Returns the text of the expression and its position."""
    start = cursor.position
    cursor.expression()
    text = since(cursor, start)
    cursor.expect(")")
    cursor.expect_word("stored")
    return text, start


def _both(what: str, column: str, table: Name, at: int | None) -> TailgateError:
    return _syntax(f'both {what} specified for column "{column}" of table "{table.name}"', at)


def _conflicting(column: str, table: Name, at: int | None) -> TailgateError:
    return _syntax(f'conflicting NULL/NOT NULL declarations for column "{column}" of table "{table.name}"', at)


def _syntax(message: str, at: int | None) -> TailgateError:
    return SyntaxError_(message, position=at)
