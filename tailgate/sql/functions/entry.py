"""An entry of the function catalogue: one signature, its result type, and its SQL in each engine.

Operators and casts are entries too. In the SQL templates, `{0}`, `{1}` and so on are the rendered
arguments, which are in parentheses if necessary and have exactly the entry's argument types.
`{type}` is the result type in the engine's spelling, `{scale}` the scale of a numeric result,
`{long0}` argument 0, cast so that DuckDB computes the result in 128 bits if it needs them,
`{scale0}` the scale of argument 0, `{name0}` the name of its type, and `{registered0}` its type as a regtype.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tailgate.lake.types import Type

# the result type for the arguments' types, if the scale of a numeric result depends on them
ResultType = Callable[[tuple[Type, ...]], Type]
Context = Literal["implicit", "assignment", "explicit"]
Kind = Literal["function", "operator", "prefix", "cast", "aggregate", "window", "set"]


@dataclass(frozen=True, slots=True)
class Function:
    """One signature.

    `name` is the name of a function, the sign of an operator, or `cast`. `date_trunc:hour` is
    date_trunc with that unit, which must be a literal and is not among the arguments.

    `arguments` are names of types as in lake.types.FACTS, with `[]` for an array and `any` for any
    type; PostgreSQL's `anyelement`, `anyarray`, `anycompatible` and `anycompatiblearray` are
    replaced by binding. The last argument repeats if the function is `variadic`. `result` is the
    name of a type, or a function of the arguments' types.

    `spark` and `duckdb` are the templates. An entry without templates exists in PostgreSQL and is
    not supported; overload resolution must be able to choose it. An aggregate's or window function's
    `spark` is not used, because the engine maintains it by its name and arguments. The templates of
    a `set` function return its rows as an array, of structs if it has several columns.

    `strict` functions return NULL if an argument is NULL. `volatility` 'stable' means one value in a
    statement (not allowed in views). `context` of a cast tells where PostgreSQL applies it without
    an explicit cast. `note` is a difference from PostgreSQL, for the documentation. `outputs` are
    the columns (name, type) of a set function if they have names.
    """

    name: str
    arguments: tuple[str, ...]
    result: str | ResultType
    spark: str = ""
    duckdb: str = ""
    kind: Kind = "function"
    strict: bool = True
    volatility: Literal["immutable", "stable", "volatile"] = "immutable"
    variadic: bool = False
    context: Context = "explicit"
    note: str = ""
    outputs: tuple[tuple[str, str], ...] = ()
    unified: bool = False  # numeric arguments are cast to one scale
    flagged: bool = False  # the last argument is the flags of a regular expression
    takes_general: bool = False  # arguments of type numeric are general, or the result is
    by_session: bool = False  # the gateway evaluates its calls, without templates (`sql.plan.session_calls`)
    exact: tuple[str, str] = ("", "")  # Spark's and DuckDB's templates if the result has less than 38 digits, so that it cannot overflow

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


def strict(template: str, arguments: int) -> str:
    """Returns a template that is NULL if one of the first arguments is NULL."""
    any_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(arguments))
    return f"(CASE WHEN {any_null} THEN NULL ELSE {template} END)"


def spark_error(sqlstate: str, message: str) -> str:
    """Returns Spark SQL that raises an error; tailgate.errors.SparkErrors reads the message."""
    return f"raise_error('\\u0001{sqlstate}{message}')"


def duckdb_error(sqlstate: str, message: str) -> str:
    """Returns DuckDB SQL that raises an error for `sql.render.duckdb_functions.error_of()`."""
    return f"error('[{sqlstate}] {message}')"


def udf(
    name: str,
    arguments: tuple[str, ...],
    result: str | ResultType,
    call: str = "",
    kind: Kind = "function",
    note: str = "",
    order: tuple[int | str, ...] = (),
) -> Function:
    """Returns an entry that the user-defined function `tg_<call>` computes in both engines.

    `call` is `name` by default. `order` are the function's arguments, if they differ from the
    entry's: positions, or SQL. A numeric's precision and scale vary, so DuckDB passes it as text,
    and Spark has the result's precision and scale as last arguments.
    """
    function = "tg_" + (call or name)
    parts = [f"{{{a}}}" if isinstance(a, int) else a for a in order or range(len(arguments))]
    is_numeric = callable(result) or result == "numeric"
    numerics = {f"{{{i}}}" for i, a in enumerate(arguments) if a == "numeric"}
    spark = f"{function}({', '.join([*parts, *(['{precision}', '{scale}'] if is_numeric else [])])})"
    duckdb = f"{function}({', '.join(f'CAST({p} AS VARCHAR)' if p in numerics else p for p in parts)})"
    return Function(name, arguments, result, spark, f"CAST({duckdb} AS {{type}})" if is_numeric else duckdb, kind, note=note)
