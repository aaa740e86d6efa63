"""ORDER BY with LIMIT is a top-k; without one it means nothing, for a relation is a bag.

limit_n(sort_k(R)) = top_{n, k}(R)        sort_k(R) = R

It goes before what takes columns away, because rows that are equal in order are taken in the order of their values.
"""

from __future__ import annotations

from sql.plan import Limit, Relation, Sort, TopK
from sql.relations import inputs, with_inputs


def first_rows(relation: Relation) -> Relation:
    if isinstance(relation, Limit):
        keys = relation.input.keys if isinstance(relation.input, Sort) else ()
        return TopK(first_rows(relation.input), (), keys, relation.count, relation.offset, position=relation.position)
    if isinstance(relation, Sort):
        return first_rows(relation.input)
    return with_inputs(relation, tuple(map(first_rows, inputs(relation))))
