"""Evaluates a MERGE: the rows that its clauses update, delete and insert, which are checked together.

Source: PostgreSQL 15, src/backend/executor/nodeModifyTable.c (ExecMergeMatched, ExecMergeNotMatched).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tailgate.gateway.writes.plans import MergePlan
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake.errors import CardinalityViolation
from tailgate.sql.plan.writes import INCOMING

if TYPE_CHECKING:
    from tailgate.gateway.writes.evaluation import Effect, Evaluation


def merge(evaluation: Evaluation, write: MergePlan) -> Effect:
    """Returns the effect of a MERGE. Raises 21000 if it would change a row twice, and the errors of constraints."""
    table, rules, width = write.table, write.own, len(write.table.columns)
    rows = evaluation.query(write.rows)
    actions = np.array(write.actions)[rows.column(width + 1).to_numpy()]

    def part(*chosen: str) -> pa.Table:
        return rows.filter(pa.array(np.isin(actions, chosen)))

    def old(part: pa.Table) -> pa.Table:
        return fitted(part.select(range(width)), table.columns)

    def new(part: pa.Table) -> pa.Table:
        return fitted(part.select(range(width + 2, 2 * width + 2)), table.columns)

    changed, updated, deleted, inserted = part("update", "delete"), part("update"), part("delete"), part("insert")
    if evaluation.once(table, changed).num_rows < changed.num_rows:
        raise CardinalityViolation(
            "MERGE command cannot affect row a second time",
            hint="Ensure that not more than one source row matches any one target row.",
        )
    before, after, fresh = old(updated), new(updated), new(inserted)
    evaluation.violations.allowed(rules, after)
    evaluation.check_unique(rules, rules.keys, fresh, fresh)
    evaluation.check_moved(rules, before, after, fresh)
    references = evaluation.references(write.rules)
    references.update(table, before, after, _copies(updated, width))
    references.delete(table, old(deleted), _copies(deleted, width))
    references.insert(table, fresh)
    references.check()
    count = int(_copies(changed, width).sum()) + inserted.num_rows
    return evaluation.effect(count, references, frozenset(write.rows.scans) - {INCOMING}, write.rules)


def _copies(rows: pa.Table, width: int) -> np.ndarray:
    copies: np.ndarray = rows.column(width).to_numpy()
    return copies.astype(np.int64)
