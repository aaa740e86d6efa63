"""Factors common conditions out of OR, so that they can become join conditions.

    (a ∧ b) ∨ (a ∧ c) = a ∧ (b ∨ c)

Only conditions that cannot fail are moved: after the rewrite they are evaluated even if an earlier
alternative is true.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.sql.plan import Filter, Join, Or, Relation, Scalar
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import conjunction, conjuncts
from tailgate.sql.plan.traversal import bottom_up


def factor_conditions(relation: Relation) -> Relation:
    """Factors common conditions out of the alternatives in filters and joins."""
    return bottom_up(relation, _factored)


def _factored(relation: Relation) -> Relation:
    if not isinstance(relation, Filter | Join) or relation.condition is None:
        return relation
    before = conjuncts(relation.condition)
    after = tuple(c for term in before for c in _factors(term))
    return relation if len(after) == len(before) else replace(relation, condition=conjunction(after))


def _factors(term: Scalar) -> tuple[Scalar, ...]:
    """Returns the conjuncts equivalent to a disjunction; the term itself if nothing is common."""
    if not isinstance(term, Or):
        return (term,)
    alternatives = [conjuncts(a) for a in term.arguments]
    common = tuple(dict.fromkeys(c for c in alternatives[0] if not fallible(c) and all(c in a for a in alternatives)))
    if not common:
        return (term,)
    rest = [tuple(c for c in a if c not in common) for a in alternatives]
    if not all(rest):
        # an alternative consists of the common conditions only
        return common
    return (*common, Or(tuple(map(conjunction, rest))))
