"""CREATE OBJECTIVE: the objective's catalog item. `tailgate watch` evaluates it (`operations.watch.objectives`)."""

from __future__ import annotations

import re
from fractions import Fraction

from tailgate.engine.ddl.durations import milliseconds
from tailgate.lake.catalog import Catalog, Item, MaterializedView, Objective, Source, Table, View
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.errors import InvalidParameterValue, UndefinedObject, WrongObjectType
from tailgate.sql.new_items import normalized, schema_for
from tailgate.sql.statements import CreateObjective

WINDOW_MS, WINDOW_MIN_MS, WINDOW_MAX_MS = 60_000, 10_000, 3_600_000  # default; a step of the history; the steps in memory
LIMIT_MAX_MS = 7 * 24 * 3_600_000
AVAILABILITY_PPM = 999_000
SHARE = re.compile(r"\s*(\d{1,2}(?:\.\d{1,4})?)\s*%?\s*")


def create_objective(statement: CreateObjective, text: str, catalog: Catalog) -> Objective:
    """Returns the item of an objective; `text` is the statement as typed."""
    schema = schema_for(statement.name, catalog)
    measured = _measured(statement, catalog)
    window = WINDOW_MS if statement.over is None else _length("OVER", statement.over, WINDOW_MIN_MS, WINDOW_MAX_MS)
    item = Objective(
        catalog.next_id,
        statement.name.name,
        depends=(measured.id,),
        sql=text,
        schema=schema.id,
        limits_ms={figure: _length(f"{statement.measure.upper()} {figure}", limit, 1, LIMIT_MAX_MS) for figure, limit in statement.limits},
        window_ms=window,
        availability_ppm=AVAILABILITY_PPM if statement.availability is None else _share(statement.availability),
    )
    return normalized(item, statement, catalog)


def _measured(statement: CreateObjective, catalog: Catalog) -> Item:
    """Returns the relation or the endpoint that is measured. Raises 42P01, 42704, 42809."""
    name = statement.from_item
    if statement.measure == "latency":
        endpoint = catalog.find(name, "endpoint")
        if endpoint is None:
            raise UndefinedObject(f'endpoint "{name}" does not exist', position=name.position)
        return endpoint
    relation = catalog.relation(name)
    if not isinstance(relation, Source | Table | View | MaterializedView) or is_system(relation.id):
        raise WrongObjectType(f'"{relation.name}" has no freshness lag', position=name.position)
    return relation


def _length(what: str, interval: str, least: int, most: int) -> int:
    """Returns the length of an interval in ms. Raises 22007, and 22023 unless it is within the limits."""
    length = milliseconds(interval)
    if not least <= length <= most:
        raise InvalidParameterValue(f'invalid {what}: "{interval}"', hint=f"It must be from {least} ms to {most // 1000} s.")
    return length


def _share(text: str) -> int:
    """Returns a share in millionths.

    >>> _share("99.9 %")
    999000
    """
    match = SHARE.fullmatch(text)
    if match is None or not 0 < (share := Fraction(match[1])) < 100:
        raise InvalidParameterValue(f'invalid AVAILABILITY: "{text}"', hint="It is a share above 0 % and below 100 %, such as '99.9 %'.")
    return int(share * 10_000)
