"""Parses CREATE TABLE: columns, defaults, PRIMARY KEY and CHECK. Other constraints raise 0A000.

Source: PostgreSQL 15, "CREATE TABLE"; gram.y, columnDef, ConstraintElem.
"""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import InvalidTableDefinition, SyntaxError_, TailgateError
from tailgate.lake.types import INT2, INT4, INT8
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import resolve
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.parsers.clauses import column_names, if_not_exists, relation_name, since, with_options
from tailgate.sql.statements.parsers.sequences import sequence_options
from tailgate.sql.statements.parsers.tables.create_table_as import at_query_of_table, create_table_as
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.writes import Check, CreateTable, CreateTableAs, Generation, TableColumn

# unsupported constraints and column clauses: first words → name and hint of the error
_REFUSED: dict[tuple[str, ...], tuple[str, str | None]] = {
    ("unique",): ("UNIQUE", "Only a primary key is checked: make these columns the PRIMARY KEY."),
    ("references",): ("REFERENCES", None),
    ("foreign", "key"): ("FOREIGN KEY", None),
    ("exclude",): ("EXCLUDE", None),
    ("like",): ("LIKE", "Write the columns out."),
    ("collate",): ("COLLATE", "Text is compared in C order."),
    ("compression",): ("COMPRESSION", None),
    ("storage",): ("STORAGE", None),
}
_BEHIND = {
    ("inherits",): "INHERITS",
    ("partition", "by"): "PARTITION BY",
    ("using",): "USING",
    ("on", "commit"): "ON COMMIT",
    ("tablespace",): "TABLESPACE",
}


SERIAL = {
    "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8, "smallserial": INT2, "serial2": INT2,
}  # fmt: skip


class _Key:
    """The primary key and the CHECK constraints that are parsed so far."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.columns: tuple[str, ...] = ()
        self.constraint: str | None = None
        self.position: int | None = None

    def set(self, columns: tuple[str, ...], constraint: str | None, table: Name, at: int) -> None:
        """Sets the primary key. Raises 42P16 if there already is one."""
        if self.columns:
            raise InvalidTableDefinition(f'multiple primary keys for table "{table.name}" are not allowed', position=at)
        self.columns, self.constraint, self.position = columns, constraint, at


def create_table(cursor: Parser) -> CreateTable | CreateTableAs:
    """Parses the rest of CREATE TABLE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("of") or cursor.at_word("partition", "of"):
        raise unsupported("CREATE TABLE … " + ("OF" if cursor.at_word("of") else "PARTITION OF"), cursor.position)
    if at_query_of_table(cursor):
        return create_table_as(cursor, this, absent)
    cursor.expect("(")
    columns: list[TableColumn] = []
    key = _Key()
    if not cursor.at(")"):
        while True:
            if not _table_constraint(cursor, this, key):
                columns.append(_column(cursor, this, key))
            if not cursor.accept(","):
                break
    cursor.expect(")")
    settings, clause = with_options(cursor)
    for words, what in _BEHIND.items():
        if cursor.at_word(*words):
            raise unsupported(what, cursor.position)
    return CreateTable(this, tuple(columns), key.columns, key.constraint, absent, key.position, tuple(key.checks), settings, clause)


def _table_constraint(cursor: Parser, table: Name, key: _Key) -> bool:
    """Parses a table constraint into `key`. Returns False if there is none."""
    at = cursor.position
    constraint = None
    if cursor.accept_word("constraint"):
        constraint = names.name(cursor).name
    if cursor.accept_word("primary", "key"):
        key.set(column_names(cursor), constraint, table, at)
        _modes(cursor)
        return True
    if cursor.accept_word("check"):
        key.checks.append(_check(cursor, constraint))
        return True
    for words in (("unique",), ("foreign", "key"), ("exclude",), ("like",)):
        if cursor.at_word(*words):
            what, hint = _REFUSED[words]
            raise unsupported(f"{what} of a table", cursor.position, hint)
    if constraint is not None:
        raise cursor.error()
    return False


def _check(cursor: Parser, constraint: str | None) -> Check:
    """Parses the rest of CHECK."""
    cursor.expect("(")
    start = cursor.position
    cursor.expression()
    text = since(cursor, start)
    cursor.expect(")")
    cursor.accept_word("no", "inherit")
    _modes(cursor)
    return Check(constraint, text, start)


def _modes(cursor: Parser) -> None:
    """Parses NOT DEFERRABLE and INITIALLY IMMEDIATE, the defaults.

    Raises 0A000 for deferrable constraints.
    """
    while True:
        if cursor.at_word("deferrable") or cursor.at_word("initially", "deferred"):
            raise unsupported("DEFERRABLE", cursor.position)
        if not (cursor.accept_word("not", "deferrable") or cursor.accept_word("initially", "immediate")):
            return


def table_column(cursor: Parser, table: Name) -> TableColumn:
    """Parses a column of ALTER TABLE … ADD COLUMN. Raises 0A000 for a constraint that applies to other columns or rows."""
    at = cursor.position
    key = _Key()
    column = _column(cursor, table, key)
    if key.columns or key.checks or column.generated is not None:
        what = "PRIMARY KEY" if key.columns else "CHECK" if key.checks else "a sequence"
        raise unsupported(f"{what} of a column that is added", at)
    return column


def _column(cursor: Parser, table: Name, key: _Key) -> TableColumn:
    """Parses a column with its constraints. Keys and checks go to `key`."""
    at = cursor.position
    this = names.name(cursor).name
    serial = SERIAL.get(cursor.token.value) if cursor.token.kind == "word" else None
    if serial is not None:
        cursor.advance()
    type = serial or resolve(type_name(cursor))
    generated: Generation | None = None if serial is None else "serial"
    settings: SequenceOptions | None = None
    nullable: bool | None = None if serial is None else False
    default: str | None = None
    default_at: int | None = None
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
            if generated is not None:
                raise _both(this, table, here)
            start = default_at = cursor.position
            cursor.expression(boolean=False)
            default = since(cursor, start)
        elif cursor.accept_word("generated"):
            if generated is not None and generated != "serial":
                raise _syntax(f'multiple identity specifications for column "{this}" of table "{table.name}"', here)
            if default is not None or serial is not None:
                raise _both(this, table, here if serial is None else None)
            generated, settings = _identity(cursor, here)
            if nullable is True:
                raise _conflicting(this, table, here)
            nullable = False
        elif cursor.accept_word("primary", "key"):
            key.set((this,), constraint, table, here)
            _modes(cursor)
            constraint = None
        elif cursor.accept_word("check"):
            key.checks.append(_check(cursor, constraint))
            constraint = None
        else:
            refused = next((words for words in _REFUSED if cursor.at_word(*words)), None)
            if refused is not None:
                what, hint = _REFUSED[refused]
                raise unsupported(f"{what} of a column", here, hint)
            return TableColumn(this, type, nullable is not False, default, at, default_at, generated, settings)


def _identity(cursor: Parser, at: int) -> tuple[Generation, SequenceOptions]:
    """Parses {ALWAYS | BY DEFAULT} AS IDENTITY [(options)], after GENERATED. Raises 0A000 for a generated column."""
    generated: Generation = "always"
    if not cursor.accept_word("always"):
        cursor.expect_word("by", "default")
        generated = "by default"
    cursor.expect_word("as")
    if cursor.at("("):
        raise unsupported("GENERATED ALWAYS AS (expression) of a column", at, "Compute the column in a view.")
    cursor.expect_word("identity")
    if not cursor.accept("("):
        return generated, SequenceOptions()
    settings = sequence_options(cursor)
    cursor.expect(")")
    return generated, settings


def _both(column: str, table: Name, at: int | None) -> TailgateError:
    return _syntax(f'both default and identity specified for column "{column}" of table "{table.name}"', at)


def _conflicting(column: str, table: Name, at: int | None) -> TailgateError:
    return _syntax(f'conflicting NULL/NOT NULL declarations for column "{column}" of table "{table.name}"', at)


def _syntax(message: str, at: int | None) -> TailgateError:
    return SyntaxError_(message, position=at)
