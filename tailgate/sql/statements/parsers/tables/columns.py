"""Parses a column of CREATE TABLE and ALTER TABLE … ADD COLUMN.

Source: PostgreSQL 15, "CREATE TABLE"; gram.y, columnDef; parse_utilcmd.c, transformColumnDefinition.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import SyntaxError_, TailgateError
from tailgate.lake.types import INT2, INT4, INT8
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.parsers.clauses import collation
from tailgate.sql.statements.parsers.sequences import generation, identity_options
from tailgate.sql.statements.parsers.tables.constraints import column_constraint
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.tables import Constraint, Generation, TableColumn

# unsupported clauses of a column: first words → name and hint of the error
_REFUSED: dict[tuple[str, ...], tuple[str, str | None]] = {
    ("compression",): ("COMPRESSION", None),
    ("storage",): ("STORAGE", None),
}

SERIAL = {
    "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8, "smallserial": INT2, "serial2": INT2,
}  # fmt: skip


def column(cursor: Parser, table: Name, add: Callable[[Constraint], None]) -> TableColumn:
    """Parses a column. `add` takes its constraints, except NOT NULL."""
    at = cursor.position
    this = _Column(cursor, table)
    constraint: str | None = None
    while True:
        here = cursor.position
        if cursor.accept_word("constraint"):
            constraint = names.name(cursor).name
        elif this.clause(here):
            continue
        elif (parsed := column_constraint(cursor, this.name, constraint)) is not None:
            add(parsed)
            constraint = None
        else:
            refused = next((words for words in _REFUSED if cursor.at_word(*words)), None)
            if refused is not None:
                what, hint = _REFUSED[refused]
                raise unsupported(f"{what} of a column", here, hint)
            return this.parsed(at)


class _Column:
    """The parts of a column that are parsed so far: its name, its type and some of its clauses."""

    def __init__(self, cursor: Parser, table: Name) -> None:
        self._cursor, self._table = cursor, table
        self.name = names.name(cursor).name
        serial = SERIAL.get(cursor.token.value) if cursor.token.kind == "word" else None
        if serial is not None:
            cursor.advance()
        self._is_serial = serial is not None
        self._type_at = cursor.position
        self._type = serial or named_type(type_name(cursor))
        self._generated: Generation | None = "serial" if self._is_serial else None
        self._settings: SequenceOptions | None = None
        self._nullable: bool | None = False if self._is_serial else None
        self._default: str | None = None
        self._default_at: int | None = None
        self._expression: str | None = None
        self._collation = ""

    def parsed(self, at: int) -> TableColumn:
        return TableColumn(
            self.name,
            self._type,
            self._nullable is not False,
            self._default,
            at,
            self._default_at,
            self._generated,
            self._settings,
            self._type_at,
            self._expression,
            collation=self._collation,
        )

    def clause(self, here: int) -> bool:
        """Parses NULL, NOT NULL, DEFAULT, COLLATE or GENERATED at the position `here`. Returns whether there is one."""
        cursor = self._cursor
        if cursor.accept_word("not", "null"):
            if self._nullable is True:
                raise self._conflicting(here)
            self._nullable = False
        elif cursor.accept_word("null"):
            if self._nullable is False:
                raise self._conflicting(None if self._is_serial else here)
            self._nullable = True
        elif cursor.accept_word("default"):
            self._parse_default(here)
        elif name := collation(cursor, self._type, here):
            if self._collation:
                raise SyntaxError_("multiple COLLATE clauses not allowed", position=here)
            self._collation = name
        elif cursor.accept_word("generated"):
            kind = generation(cursor)
            cursor.expect_word("as")
            if cursor.accept("("):
                self._parse_expression(kind, here)
            else:
                self._parse_identity(kind, here)
        else:
            return False
        return True

    def _parse_default(self, here: int) -> None:
        if self._default is not None or self._generated == "serial":
            raise self._multiple("default values specified", None if self._is_serial else here)
        if self._expression is not None:
            raise self._both("default and generation expression", here)
        if self._generated is not None:
            raise self._both("default and identity", here)
        start = self._default_at = self._cursor.position
        self._cursor.expression(boolean=False)
        self._default = self._cursor.since(start)

    def _parse_expression(self, kind: Generation, here: int) -> None:
        """Parses the rest of GENERATED ALWAYS AS (expression) STORED."""
        if kind != "always":
            raise SyntaxError_("for a generated column, GENERATED ALWAYS must be specified", position=here + len("GENERATED "))
        if self._expression is not None:
            raise self._multiple("generation clauses specified", here)
        if self._default is not None or self._is_serial:
            raise self._both("default and generation expression", None if self._is_serial else here)
        if self._generated is not None:
            raise self._both("identity and generation expression", here)
        start = self._default_at = self._cursor.position
        self._cursor.expression()
        self._expression = self._cursor.since(start)
        self._cursor.expect(")")
        self._cursor.expect_word("stored")

    def _parse_identity(self, kind: Generation, here: int) -> None:
        """Parses the rest of GENERATED … AS IDENTITY."""
        self._cursor.expect_word("identity")
        if self._generated is not None and not self._is_serial:
            raise self._multiple("identity specifications", here)
        if self._default is not None or self._is_serial:
            raise self._both("default and identity", None if self._is_serial else here)
        if self._expression is not None:
            raise self._both("identity and generation expression", here)
        self._generated, self._settings = kind, identity_options(self._cursor)
        if self._nullable is True:
            raise self._conflicting(here)
        self._nullable = False

    def _multiple(self, what: str, at: int | None) -> TailgateError:
        return SyntaxError_(f'multiple {what} for column "{self.name}" of table "{self._table.name}"', position=at)

    def _both(self, what: str, at: int | None) -> TailgateError:
        return SyntaxError_(f'both {what} specified for column "{self.name}" of table "{self._table.name}"', position=at)

    def _conflicting(self, at: int | None) -> TailgateError:
        message = f'conflicting NULL/NOT NULL declarations for column "{self.name}" of table "{self._table.name}"'
        return SyntaxError_(message, position=at)
