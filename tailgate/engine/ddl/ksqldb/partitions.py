"""The numbers of partitions of the topics that a query of ksqlDB reads.

The inputs of a join must have the same number, as in ksqlDB, except those of joins by a foreign key.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.sql.ksqldb.expressions import SelectQuery
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries import from_clause


def check_partitions(query: SelectQuery, catalog: Catalog, partitions: Callable[[Item], int | None]) -> None:
    """Raises 55000 if two inputs of a join have different numbers of partitions.

    `partitions`: returns the number of partitions of an item's topic, or None if it has none.
    """
    if not query.joins:
        return
    first, *others = from_clause(query, catalog).co_partitioned
    count = partitions(first)
    for other in others:
        other_count = partitions(other)
        if count is None or other_count is None or count == other_count:
            continue
        one, two = (f"`{ksqldb_name(item.name)}`" for item in (first, other))
        raise ObjectNotInPrerequisiteState(
            f"Can't join {one} with {two} since the number of partitions don't match. {one} partitions = {count}; {two} partitions ="
            f" {other_count}. Please repartition either one so that the number of partitions match.",
            position=query.position,
        )
