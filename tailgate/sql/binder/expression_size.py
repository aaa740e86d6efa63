"""A limit on the size of bound expressions.

Binding repeats operands: NULLIF(x, y) becomes CASE WHEN x = y THEN NULL ELSE x END, BETWEEN and
CASE x WHEN … repeat x, and a function's body can use its argument twice. A repeated operand is one
object in several places, but code that walks an expression visits each place. Forty nested NULLIFs
would take 2^40 visits.
"""

from __future__ import annotations

from tailgate.lake.errors import StatementTooComplex
from tailgate.sql.binder.grouping import aggregate, windowed
from tailgate.sql.plan import Scalar
from tailgate.sql.plan.rewriting import parts
from tailgate.sql.plan.traversal import read_by

# parts of one expression; an IN list with this many literals takes a second to bind
PARTS_MAX = 100_000


class Sizes:
    """The sizes of the expressions of one statement, by id()."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Scalar, int]] = {}

    def check(self, scalar: Scalar) -> Scalar:
        """Returns the same scalar.

        Raises 54001 if it has more than PARTS_MAX parts, counting repeated parts each time.
        """
        if self._size(scalar) > PARTS_MAX:
            raise StatementTooComplex(
                "statement is too complex",
                detail=f"An expression may have at most {PARTS_MAX} parts; what is computed more than once counts as often.",
                hint="Compute it once, in a subquery in FROM, and refer to its column.",
            )
        return scalar

    def _size(self, scalar: Scalar) -> int:
        entry = self._known.get(id(scalar))
        if entry is None:
            entry = self._known[id(scalar)] = scalar, 1 + sum(map(self._size, _parts(scalar)))
        return entry[1]


def _parts(scalar: Scalar) -> tuple[Scalar, ...]:
    if (window := windowed(scalar)) is not None:
        return window.scalars
    call = aggregate(scalar)
    return parts(scalar) if call is None else read_by(call)
