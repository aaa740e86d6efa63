"""The groups of a query with GROUP BY, for the translation of its expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.typed.values import Typed


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a query.

    `limits`: as of SelectQuery. `order`: the texts of the order of the records of a group, by default that of their positions.
    `keys`: the values of the expressions of GROUP BY.
    """

    limits: Mapping[str, int]
    order: Sequence[str]
    keys: Mapping[e.Expression, Typed]
