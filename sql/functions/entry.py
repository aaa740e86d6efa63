"""A row of the function catalogue: one signature, what it gives, and how each engine computes it.

Operators and casts are rows too. Templates hold `{0}`, `{1}`, … for the arguments, already rendered, complete in themselves (in
parentheses where that matters) and of exactly the row's argument types; `{type}` is the result's type in the engine's spelling,
`{scale}` the scale of a numeric result, `{scale0}` that of argument 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lake.types import Type

ResultType = Callable[[tuple[Type, ...]], Type]  # of the arguments' types, for results whose numeric scale depends on them
Context = Literal["implicit", "assignment", "explicit"]


@dataclass(frozen=True, slots=True)
class Function:
    """One signature.

    Names of types may be PostgreSQL's `anyelement`, `anyarray`, `anycompatible` and `anycompatiblearray`: binding makes a row of the
    types at hand.

    `name`: of an operator its sign, of a cast `cast`; `date_trunc:hour` is date_trunc with that unit, which must be a literal, and
    has the arguments after it. `arguments`: names of types as in lake.types.FACTS, with `[]` for an array, `any` for whatever
    comes; the last one repeats if `variadic`. `result`: name of a type, or a function of the arguments' types where modifiers
    depend on them. `strict`: NULL in, NULL out. `volatility`: 'immutable', 'stable' (once a statement; refused in views) or
    'volatile'. `context`: of a cast, when it happens by itself. A row without templates is one that PostgreSQL has and we refuse:
    it must be there to be chosen. `kind` 'aggregate': how it is kept up to date is the engine's business, by `name` and `arguments`;
    its `spark` is Spark's own aggregate, for what it is worth. `kind` 'set': gives rows; its templates give them as an array, of structs
    if the rows have several columns. `outputs`: the columns (name, type), where they have names of their own.
    """

    name: str
    arguments: tuple[str, ...]
    result: str | ResultType
    spark: str = ""
    duckdb: str = ""
    kind: Literal["function", "operator", "prefix", "cast", "aggregate", "window", "set"] = "function"
    strict: bool = True
    volatility: Literal["immutable", "stable", "volatile"] = "immutable"
    variadic: bool = False
    context: Context = "explicit"
    note: str = ""
    outputs: tuple[tuple[str, str], ...] = ()
    unified: bool = False  # whether numerics among the arguments get one scale
    flagged: bool = False  # whether the last argument is flags of a regular expression

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


def strict(template: str, arguments: int) -> str:
    """A template that would look past a NULL, made to give NULL for it."""
    return f"(CASE WHEN {' OR '.join(f'{{{n}}} IS NULL' for n in range(arguments))} THEN NULL ELSE {template} END)"


def spark_error(sqlstate: str, message: str) -> str:
    """Spark SQL that raises; the engine reads SQLSTATE and message from the text behind the mark."""
    return f"raise_error('\\u0001{sqlstate}{message}')"


def duckdb_error(sqlstate: str, message: str) -> str:
    """DuckDB SQL that raises; `sql.duckdb_functions.error_of` reads it."""
    return f"error('[{sqlstate}] {message}')"


def own(
    name: str,
    arguments: tuple[str, ...],
    result: str | ResultType,
    call: str = "",
    kind: Literal["function", "operator", "prefix", "cast"] = "function",
    note: str = "",
    order: tuple[int | str, ...] = (),
) -> Function:
    """A row that a function of ours computes, the same in both engines: `tg_<call>`, by default `tg_<name>`.

    `order`: its arguments by position, where they are others than the row's; a text is SQL as it is. A numeric has its own precision
    and scale: as an argument it passes to DuckDB as text, as a result Spark is told what it must be.
    """
    called = "tg_" + (call or name)
    parts = [f"{{{a}}}" if isinstance(a, int) else a for a in order or range(len(arguments))]
    exact = callable(result) or result == "numeric"
    numerics = {f"{{{i}}}" for i, a in enumerate(arguments) if a == "numeric"}
    spark = f"{called}({', '.join([*parts, *(['{precision}', '{scale}'] if exact else [])])})"
    duckdb = f"{called}({', '.join(f'CAST({p} AS VARCHAR)' if p in numerics else p for p in parts)})"
    return Function(name, arguments, result, spark, f"CAST({duckdb} AS {{type}})" if exact else duckdb, kind, note=note)


def refused(
    name: str, arguments: tuple[str, ...], result: str | ResultType, kind: Literal["function", "operator", "prefix"] = "function"
) -> Function:
    """A row that PostgreSQL has and neither engine: it must be there to be chosen, and refused by name."""
    return Function(name, arguments, result, kind=kind)
