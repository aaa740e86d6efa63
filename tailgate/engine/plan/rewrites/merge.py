"""Merges filters over filters, and projections over projections.

σ_b(σ_a(R)) = σ_{a and b}(R)
π_g(π_f(R)) = π_{g∘f}(R)            unless an expression of f would be computed twice
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tailgate.sql.plan import Column, Filter, Literal, Project, Reduce, Relation, Scalar
from tailgate.sql.plan.rewriting import conjunction, conjuncts, substituted, walk
from tailgate.sql.plan.traversal import bottom_up, is_identity, read_by, with_scalars


def merge_filters(relation: Relation) -> Relation:
    """Merges filters.

    The conjuncts of a filter are evaluated in order, up to the first that is not true, so merging
    does not make additional rows fail.
    """

    def rule(node: Relation) -> Relation:
        if isinstance(node, Filter) and isinstance(node.input, Filter):
            return Filter(node.input.input, conjunction(conjuncts(node.input.condition) + conjuncts(node.condition)))
        return node

    return bottom_up(relation, rule)


def merge_projections(relation: Relation) -> Relation:
    """Merges projections, also into an aggregate, which projects its input in any case."""

    def rule(node: Relation) -> Relation:
        if not isinstance(node, Project | Reduce) or not isinstance(node.input, Project):
            return node
        inner = node.input.expressions
        read = node.expressions if isinstance(node, Project) else (*node.keys, *(s for c in node.aggregates for s in read_by(c)))
        used = Counter(s.index for e in read for s in walk(e) if isinstance(s, Column))
        if any(used[i] > 1 and not _cheap(e) for i, e in enumerate(inner)):
            return node

        def through(scalar: Scalar) -> Scalar:
            return substituted(scalar, inner)

        if isinstance(node, Project):
            return Project(node.input.input, tuple(map(through, node.expressions)), node.columns)
        return with_scalars(replace(node, input=node.input.input), through)

    return bottom_up(relation, rule)


def drop_identities(relation: Relation) -> Relation:
    """Removes projections that only rename columns, because names do not matter inside a plan.

    The top projection is the query's and stays.
    """

    def rule(node: Relation) -> Relation:
        return node.input if isinstance(node, Project) and is_identity(node) else node

    return bottom_up(relation, rule)


def _cheap(scalar: Scalar) -> bool:
    """Returns whether computing a scalar twice costs nothing."""
    return isinstance(scalar, Column | Literal)
