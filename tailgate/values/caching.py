"""A cache of the results of a function for short texts and byte strings.

Clients choose the arguments, so a limit of their number alone would not limit the memory. As PostgreSQL does with the patterns of
to_char, the result for a long argument is computed each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LENGTH_MAX = 1_000  # characters or bytes of a cached argument

Argument = TypeVar("Argument", str, bytes)
Result = TypeVar("Result")


def cached(entries: int, length_max: int = LENGTH_MAX) -> Callable[[Callable[[Argument], Result]], Callable[[Argument], Result]]:
    """Returns a decorator that caches the results for `entries` arguments that are not longer than `length_max`."""

    def decorate(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        of_short = lru_cache(entries)(function)

        @wraps(function)
        def result(argument: Argument) -> Result:
            return of_short(argument) if len(argument) <= length_max else function(argument)

        return result

    return decorate
