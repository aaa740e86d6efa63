"""Parses CREATE TABLE: columns with their types, defaults and sequences, and constraints.

Source: PostgreSQL 15, "CREATE TABLE"; gram.y, columnDef.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidTableDefinition
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name, with_options
from tailgate.sql.statements.parsers.tables.columns import column
from tailgate.sql.statements.parsers.tables.constraints import CONSTRAINTS, table_constraint
from tailgate.sql.statements.parsers.tables.create_table_as import at_query_of_table, create_table_as, on_commit
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.tables import Check, Constraint, CreateTable, ForeignKey, Like, TableColumn, Unique
from tailgate.sql.statements.writes import CreateTableAs

_BEHIND = {
    ("inherits",): "INHERITS",
    ("partition", "by"): "PARTITION BY",
    ("using",): "USING",
    ("tablespace",): "TABLESPACE",
}


LIKE_OPTIONS = (
    "comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage",
)  # fmt: skip


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
            case Unique(index=str(), position=at):
                raise FeatureNotSupported("cannot use an existing index in CREATE TABLE", position=at)
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
                columns.append(column(cursor, this, constraints.add))
            if not cursor.accept(","):
                break
    cursor.expect(")")
    settings, clause = with_options(cursor, parameters=True)
    cursor.accept_word("without", "oids")
    end_of_transaction = on_commit(cursor, temporary=temporary)
    for words, what in _BEHIND.items():
        if cursor.at_word(*words):
            raise unsupported(what, cursor.position)
    key = constraints.primary or Unique(None, (), 0)
    uniques = tuple(constraints.uniques)
    if key.deferrable:  # rows with equal keys may exist for a while, so the key does not identify stored rows
        key, uniques = Unique(None, (), 0), (key, *uniques)
    return CreateTable(
        this,
        tuple(columns),
        key.columns,
        key.name,
        absent,
        key.position if key.columns else None,
        tuple(constraints.checks),
        settings,
        clause,
        uniques,
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
    return column(cursor, table, constraints.add), constraints.all
