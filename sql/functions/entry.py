"""A row of the function catalogue: one signature, what it gives, and how each engine computes it.

Operators and casts are rows too. Templates hold `{0}`, `{1}`, … for the arguments, already rendered and already of the row's
argument types; `{type}` is the result's type in the engine's own spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lake.types import Type

ResultType = Callable[[tuple[Type, ...]], Type]  # of the arguments' types, for results whose numeric scale depends on them


@dataclass(frozen=True, slots=True)
class Function:
    """One signature.

    `name`: of an operator its sign, of a cast `cast`. `arguments`: names of types as in lake.types.FACTS, with `[]` for an
    array; the last one repeats if `variadic`. `result`: name of a type, or a function of the arguments' types where modifiers depend
    on them. `strict`: NULL in, NULL out, without evaluation. `volatility`: 'immutable', 'stable' (once a statement; refused in
    views) or 'volatile'. `kind` 'aggregate': how it is kept up to date is the engine's business, by `name` and `arguments`.
    """

    name: str
    arguments: tuple[str, ...]
    result: str | ResultType
    spark: str
    duckdb: str
    kind: Literal["function", "operator", "cast", "aggregate"] = "function"
    strict: bool = True
    volatility: Literal["immutable", "stable", "volatile"] = "immutable"
    variadic: bool = False
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"
