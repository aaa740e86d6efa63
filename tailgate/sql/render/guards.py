"""Guards arguments of AND and OR that may fail, for rows for which an earlier argument decides the result.

    k <> 0 AND n / k > 1   ──►   k <> 0 AND CASE WHEN coalesce(k <> 0, true) THEN n / k > 1 END
    k = 0 OR n / k > 1     ──►   k = 0 OR CASE WHEN NOT coalesce(k = 0, false) THEN n / k > 1 END

In WHERE and ON, DuckDB evaluates an argument only for the rows that earlier arguments leave open, elsewhere for all rows. PostgreSQL
evaluates the arguments in order up to the one that decides.
"""

from __future__ import annotations

from itertools import takewhile

from tailgate.lake.types import BOOL
from tailgate.sql.plan import And, Case, Coalesce, Literal, Not, Or, Scalar
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import rebuild


def guarded(scalar: Scalar) -> Scalar:
    """Returns a scalar with the same value, in which arguments that cannot fail guard those behind them."""
    if isinstance(scalar, Literal):
        return scalar  # VALUES may have many
    if not isinstance(scalar, And | Or):
        return rebuild(scalar, guarded)
    kind = type(scalar)
    arguments = tuple(map(guarded, _arguments(scalar, kind)))
    guards = tuple(takewhile(lambda argument: not fallible(argument), arguments))
    rest = arguments[len(guards) :]
    if not guards or not rest:
        return kind(arguments)
    decided: Scalar = Coalesce((_joined(guards, kind), Literal(kind is And, BOOL)), BOOL)
    is_open = decided if kind is And else Not(decided)
    return kind((*guards, Case(((is_open, _joined(rest, kind)),), Literal(None, BOOL), BOOL)))


def _arguments(scalar: Scalar, kind: type[And | Or]) -> tuple[Scalar, ...]:
    """Returns the arguments of a conjunction or disjunction, also of nested ones of the same kind."""
    return tuple(a for argument in scalar.arguments for a in _arguments(argument, kind)) if isinstance(scalar, kind) else (scalar,)


def _joined(arguments: tuple[Scalar, ...], kind: type[And | Or]) -> Scalar:
    return arguments[0] if len(arguments) == 1 else kind(arguments)
