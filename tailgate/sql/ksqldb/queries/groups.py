"""The groups of a query with GROUP BY, for the translation of its expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.typed.values import Typed


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a query. `limits`: as of SelectQuery. `keys`: the values of the expressions of GROUP BY.

    `place`: texts that identify a group and its last change. `appends`: whether no row leaves a group.
    """

    limits: Mapping[str, int]
    keys: Mapping[e.Expression, Typed]
    place: tuple[str, ...] = ()
    appends: bool = False


def outside(keys: Mapping[e.Expression, Typed], parameters: Sequence[str]) -> Mapping[e.Expression, Typed]:
    """Returns the keys without those that contain a name of the parameters of a lambda, in whose body the name is the parameter."""
    return {key: typed for key, typed in keys.items() if not any(_is_name(part, parameters) for part in e.walk(key))}


def _is_name(part: Any, names: Sequence[str]) -> bool:
    return isinstance(part, e.ColumnReference) and part.source is None and part.column in names
