"""The properties that limit the lists of COLLECT_LIST and COLLECT_SET. Further values are left out.

Source: ksqlDB 0.29, documentation, "Aggregate functions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailgate.sql.ksqldb.expressions import SelectQuery

COLLECTING = ("collect_list", "collect_set")
LIMITS = tuple(f"ksql.functions.{name}.limit" for name in COLLECTING)
UNLIMITED = 2**31 - 1


def with_limits(query: SelectQuery, settings: Mapping[str, str]) -> SelectQuery:
    """Returns a query whose lists have the limits of a session's settings."""
    limits = {name: int(settings.get(setting, UNLIMITED)) for name, setting in zip(COLLECTING, LIMITS, strict=True)}
    return replace(query, limits=tuple((name, limit) for name, limit in limits.items() if limit < UNLIMITED))
