"""Parses SEARCH and CYCLE of a recursive query.

Source: PostgreSQL 15, gram.y, opt_search_clause, opt_cycle_clause.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.primaries import operand
from tailgate.sql.grammar.rules import Rules

CLAUSES = "search_and_cycle"  # key of a CTE's metadata
CONSTANTS = (exp.Literal, exp.Boolean, exp.Null, exp.Cast, exp.BitString, exp.HexString, exp.Interval)


@dataclass(frozen=True, slots=True)
class Search:
    """SEARCH {DEPTH | BREADTH} FIRST BY columns SET sequence."""

    columns: tuple[str, ...]
    sequence: str
    breadth_first: bool
    position: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """CYCLE columns SET mark [TO values[0] DEFAULT values[1]] USING path."""

    columns: tuple[str, ...]
    mark: str
    path: str
    values: tuple[exp.Expr, exp.Expr] | None
    position: int


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a recursive query."""

    search: Search | None
    cycle: Cycle | None


def search_and_cycle(cursor: Rules, cte: exp.CTE) -> None:
    """Parses the clauses behind the query of a CTE, if there are any."""
    search = cycle = None
    at = cursor.position
    if cursor.accept_word("search"):
        word = cursor.any_word("depth", "breadth")
        if word is None:
            raise cursor.error()
        cursor.expect_word("first")
        cursor.expect_word("by")
        columns = _columns(cursor)
        cursor.expect_word("set")
        search = Search(columns, name(cursor).name, word == "breadth", at)
    at = cursor.position
    if cursor.accept_word("cycle"):
        columns = _columns(cursor)
        cursor.expect_word("set")
        mark, values = name(cursor).name, None
        if cursor.accept_word("to"):
            value = _constant(cursor)
            cursor.expect_word("default")
            values = value, _constant(cursor)
        cursor.expect_word("using")
        cycle = Cycle(columns, mark, name(cursor).name, values, at)
    if search is not None or cycle is not None:
        cte.meta[CLAUSES] = Clauses(search, cycle)


def clauses_of(cte: exp.Expr) -> Clauses | None:
    """Returns the clauses of a CTE, None without any."""
    clauses = cte.meta.get(CLAUSES)
    return clauses if isinstance(clauses, Clauses) else None


def added_columns(clauses: Clauses | None) -> int:
    """Returns the number of the columns that the clauses of a CTE add."""
    return 0 if clauses is None else (clauses.search is not None) + 2 * (clauses.cycle is not None)


def _columns(cursor: Rules) -> tuple[str, ...]:
    return tuple(column.name for column in cursor.listed(name))


def _constant(cursor: Rules) -> exp.Expr:
    """Parses a literal."""
    error, constant = cursor.error(), operand(cursor)
    if not isinstance(constant, CONSTANTS):
        raise error
    return constant
