"""Parses CREATE OBJECTIVE: goals for the freshness lag of a relation, or for the latency of an endpoint.

CREATE OBJECTIVE fresh ON totals (FRESHNESS p95 '5 s', FRESHNESS max '10 s', AVAILABILITY '99.9 %') OVER '1 minute'
CREATE OBJECTIVE quick ON member (LATENCY p95 '5 ms')
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tailgate.lake.errors import InvalidObjectDefinition
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import CreateObjective
from tailgate.sql.statements.parsers.clauses import if_not_exists, relation_name

Measure: TypeAlias = Literal["freshness", "latency"]
MEASURES: tuple[Measure, ...] = ("freshness", "latency")
FIGURES = ("p50", "p95", "p99", "max")


def create_objective(cursor: Parser) -> CreateObjective:
    """Parses [OR REPLACE] OBJECTIVE [IF NOT EXISTS] name ON {relation | endpoint} (goal, …) [OVER 'interval'], after CREATE."""
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("objective")
    absent = not replace and if_not_exists(cursor)
    this = relation_name(cursor)
    cursor.expect_word("on")
    relation = relation_name(cursor)
    limits: dict[str, str] = {}
    measures: set[Measure] = set()
    availability: str | None = None
    start = cursor.position
    cursor.expect("(")
    for measure, figure, value in cursor.listed(_goal):
        if measure is not None:
            measures.add(measure)
        if figure in limits or (figure == "availability" and availability is not None):
            raise InvalidObjectDefinition(f"goal {figure} specified more than once", position=start)
        if figure == "availability":
            availability = value
        else:
            limits[figure] = value
    cursor.expect(")")
    if not limits:
        hint = "An example is FRESHNESS p95 '5 s'."
        raise InvalidObjectDefinition("an objective needs a goal for the freshness lag or the latency", hint=hint, position=start)
    if len(measures) > 1:
        hint = "FRESHNESS is measured for relations, LATENCY for endpoints."
        raise InvalidObjectDefinition("an objective cannot have both FRESHNESS and LATENCY", hint=hint, position=start)
    over = cursor.string() if cursor.accept_word("over") else None
    return CreateObjective(this, relation, measures.pop(), tuple(limits.items()), availability, over, absent, replace)


def _goal(cursor: Parser) -> tuple[Measure | None, str, str]:
    """Parses {FRESHNESS | LATENCY} figure 'interval' or AVAILABILITY 'share'.

    Returns the measure, the figure or "availability", and the text.
    """
    if cursor.accept_word("availability"):
        return None, "availability", cursor.string()
    for measure in MEASURES:
        if cursor.accept_word(measure):
            figure = cursor.any_word(*FIGURES)
            if figure is None:
                raise cursor.error()
            return measure, figure, cursor.string()
    raise cursor.error()
