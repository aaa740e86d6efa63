"""Optimistic concurrency control: a write that conflicts with a newer one is evaluated again, once the mirrors have that one.

attempt ──► conflict with entry c of the inbox ──► wait until the mirrors have c ──► next attempt, which may reserve its tables
└── accepted ──► result
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tailgate.lake.errors import SerializationFailure

Result = TypeVar("Result")

EVALUATIONS_MAX = 50  # of one statement; with a reservation the second or third succeeds unless the machine is overloaded


@dataclass(frozen=True, slots=True)
class Conflict:
    """The entry of the inbox that the next attempt must see. 0: any."""

    entry: int


async def accepted(wait: Callable[[int], Awaitable[None]], attempt: Callable[[str], Awaitable[Result | Conflict]]) -> Result:
    """Repeats an attempt until it has no conflict, and returns its result. Raises 40001 after EVALUATIONS_MAX attempts.

    `wait` waits until the mirrors have an entry of the inbox. `attempt` gets the name under which the write may reserve its tables: ""
    at first.
    """
    reserve = ""
    for _ in range(EVALUATIONS_MAX):
        result = await attempt(reserve)
        if not isinstance(result, Conflict):
            return result
        reserve = reserve or secrets.token_hex(8)
        await wait(result.entry)
    raise could_not_serialize()


def could_not_serialize() -> SerializationFailure:
    """Returns the error of a write that has a conflict and is not evaluated again."""
    return SerializationFailure("could not serialize access due to concurrent update", hint="The transaction might succeed if retried.")
