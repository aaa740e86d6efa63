"""What rewrites do with scalars besides `sql.rewrite`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sql.plan import And, Scalar
from sql.rewrite import with_columns


def renumber(scalar: Scalar, to: Mapping[int, int]) -> Scalar:
    """The scalar with the positions of its columns changed; all of them are in `to`."""
    return with_columns(scalar, lambda c: replace(c, index=to[c.index]))


def conjunction(conditions: tuple[Scalar, ...]) -> Scalar:
    """One condition of one or more."""
    return conditions[0] if len(conditions) == 1 else And(conditions)
