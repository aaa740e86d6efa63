"""User-defined functions (UDFs): their names, argument types and result types.

A UDF's SQL name is `tg_<name>` in DuckDB and in Spark. Values are in their stored form; a numeric is
a Decimal, and an interval is (months, days, microseconds). A UDF returns NULL if an argument is
NULL, so functions see None only inside lists. A result of None is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Udf:
    """A user-defined function.

    `arguments` and `result` are names of types, with [] for a list. The type `pairs` is a list of
    structs of a key and a value, both text. A `volatile` function is called for every row, with
    equal arguments too.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    result: str
    volatile: bool = False


UDFS: dict[str, Udf] = {}


def udf(*arguments: str, to: str, name: str = "", volatile: bool = False) -> Callable[[F], F]:
    """Returns a decorator that registers a function, by default under the function's own name."""

    def register(function: F) -> F:
        sql_name = name or function.__name__
        assert sql_name not in UDFS, sql_name
        UDFS[sql_name] = Udf(sql_name, function, arguments, to, volatile)
        return function

    return register
