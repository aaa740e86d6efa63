"""Names that PostgreSQL chooses for sequences, indexes and constraints: `table_columns_label`.

Source: PostgreSQL 15, src/backend/commands/indexcmds.c (makeObjectName, ChooseRelationName, ChooseIndexColumnNames).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from sqlglot import exp

from tailgate.sql.definitions import apply_edits
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.lexer.tokens import NAME_BYTES_MAX, tokens


def object_name(table: str, columns: str, label: str) -> str:
    """Returns the name, of at most NAME_BYTES_MAX bytes: the longer part is truncated. `columns`: '' for none."""
    first, second = table.encode(), columns.encode()
    space = NAME_BYTES_MAX - len(label) - (2 if columns else 1)
    while len(first) + len(second) > space:
        first, second = (first[:-1], second) if len(first) > len(second) else (first, second[:-1])
    parts = (first.decode(errors="ignore"), *([second.decode(errors="ignore")] if columns else ()), label)
    return "_".join(parts)


def free_name(table: str, columns: str, label: str, is_taken: Callable[[str], bool]) -> str:
    """Returns the first name that is not taken, with a number behind the label if needed.

    >>> free_name("t", "a", "key", {"t_a_key"}.__contains__)
    't_a_key1'
    """
    names = (object_name(table, columns, f"{label}{number or ''}") for number in count())
    return next(name for name in names if not is_taken(name))


def without_table(text: str, table: str, schema: str, *, blank: bool = False) -> str:
    """Returns an expression over a table without the table's name before columns. `blank`: spaces are in its place.

    >>> without_table('"t".a < 5 AND s.t.b > t(1)', "t", "s"), without_table("t.a::t.b > t.c '1'", "t", "s")
    ('a < 5 AND b > t(1)', "a::t.b > t.c '1'")
    """
    lengths = {
        position(column): 4 if column.text("db") else 2  # tokens
        for column in parse_expression(text).find_all(exp.Column)
        if column.text("table") == table and column.text("db") in ("", schema) and not isinstance(column.this, exp.Star)
    }
    row, edits = tokens(text), list[tuple[int, int, str]]()
    for i, token in enumerate(row):
        if token.position in lengths:
            begin, end = token.position, row[i + lengths[token.position]].position
            edits.append((begin, end, " " * (end - begin) if blank else ""))
    return apply_edits(text, edits)


def columns_part(names: Sequence[str]) -> str:
    """Returns the part of the name for the columns of an index or a foreign key."""
    return "_".join(names)
