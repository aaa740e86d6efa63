"""Parses CREATE OBJECTIVE: goals for the freshness lag of a relation.

CREATE OBJECTIVE fresh ON totals (FRESHNESS p95 '5 s', FRESHNESS max '10 s', AVAILABILITY '99.9 %') OVER '1 minute'
"""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import CreateObjective
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name

FIGURES = ("p50", "p95", "p99", "max")


def create_objective(cursor: Parser) -> CreateObjective:
    """Parses [OR REPLACE] OBJECTIVE [IF NOT EXISTS] name ON relation (goal, …) [OVER 'interval'], after CREATE."""
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("objective")
    absent = not replace and if_not_exists(cursor)
    this = relation_name(cursor)
    cursor.expect_word("on")
    relation = relation_name(cursor)
    limits: dict[str, str] = {}
    availability: str | None = None
    start = cursor.position
    cursor.expect("(")
    for figure, value in cursor.listed(_goal):
        if figure in limits or (figure == "availability" and availability is not None):
            raise InvalidObjectDefinition(f"goal {figure} specified more than once", position=start)
        if figure == "availability":
            availability = value
        else:
            limits[figure] = value
    cursor.expect(")")
    if not limits:
        hint = "An example is FRESHNESS p95 '5 s'."
        raise InvalidObjectDefinition("an objective needs a goal for the freshness lag", hint=hint, position=start)
    over = cursor.string() if cursor.accept_word("over") else None
    return CreateObjective(this, relation, tuple(limits.items()), availability, over, absent, replace)


def _goal(cursor: Parser) -> tuple[str, str]:
    """Parses FRESHNESS figure 'interval' or AVAILABILITY 'share'. Returns the figure or "availability", and the text."""
    at = cursor.position
    if cursor.accept_word("availability"):
        return "availability", cursor.string()
    if cursor.accept_word("freshness"):
        figure = cursor.any_word(*FIGURES)
        if figure is None:
            raise cursor.error()
        return figure, cursor.string()
    if cursor.accept_word("latency"):
        raise FeatureNotSupported("LATENCY in an objective is not supported", hint="Use FRESHNESS or AVAILABILITY.", position=at)
    raise cursor.error()
