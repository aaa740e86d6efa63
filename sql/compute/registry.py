"""Which functions there are, by name and types: `tg_<name>` in DuckDB, and by the same name in Spark.

A value comes as its stored form; a numeric as Decimal, an interval as (months, days, microseconds). NULL in, NULL out: a function sees
no NULL but inside a list. None is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Own:
    """`arguments`, `result`: names of types, with [] for a list; `pairs` is a list of structs of a key and a value, both text."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    result: str


FUNCTIONS: dict[str, Own] = {}


def own(*arguments: str, to: str, name: str = "") -> Callable[[F], F]:
    """Registers a function under its own name, or another."""

    def register(function: F) -> F:
        called = name or function.__name__
        assert called not in FUNCTIONS, called
        FUNCTIONS[called] = Own(called, function, arguments, to)
        return function

    return register
