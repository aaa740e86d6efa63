"""The effect of a write: changes of tables, and the relations that it has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tailgate.gateway.writes.constraints.rules import RulesByTable

Changes: TypeAlias = Mapping[int, pa.Table]  # by table, net changes with weights as last column
Hashes: TypeAlias = Mapping[int, np.ndarray]  # by table, of keys


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of evaluating a write.

    - `count`: the number of rows in the command tag
    - `changes`: of tables
    - `keys`: of the keys that it read or writes
    - `reads`: relations that it read as a whole
    - `returned`: rows of RETURNING
    - `rules`: those by which it was evaluated
    - `postponed`: the checks of foreign keys that COMMIT makes, as (id of the table, name of the constraint)
    """

    count: int = 0
    changes: Changes = field(default_factory=dict)
    keys: Hashes = field(default_factory=dict)
    reads: frozenset[int] = frozenset()
    returned: pa.Table | None = None
    rules: RulesByTable = field(default_factory=dict)
    postponed: frozenset[tuple[int, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Inserted:
    """The rows of an INSERT: new ones, and those that ON CONFLICT DO UPDATE changes from `old` to `new`. `rows`: all, in order."""

    fresh: pa.Table
    old: pa.Table
    new: pa.Table
    rows: pa.Table

    @staticmethod
    def of(rows: pa.Table) -> Inserted:
        """Returns rows that are all new."""
        return Inserted(rows, rows.slice(0, 0), rows.slice(0, 0), rows)


def merged(*parts: Hashes) -> Hashes:
    """Returns the hashes of several parts by table."""
    tables = dict.fromkeys(table for part in parts for table in part)
    return {table: np.concatenate([part[table] for part in parts if table in part]) for table in tables}


def joined(lists: Mapping[int, Sequence[np.ndarray]]) -> Hashes:
    """Returns the concatenation of the hashes of each table."""
    return {table: np.concatenate(arrays) for table, arrays in lists.items() if arrays}
