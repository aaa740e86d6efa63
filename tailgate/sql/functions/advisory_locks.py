"""The functions of advisory locks. The gateway evaluates them (`sql.plan.session_calls`).

pg_advisory_unlock_all is a function of the system catalog (`gateway.catalog.functions`), as other functions of the session.

The key is one bigint or two integers, which are two separate sets of keys.

Source: PostgreSQL 15, "Advisory Lock Functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.sql.functions.entry import Function

_KEYS = (("int8",), ("int4", "int4"))


@dataclass(frozen=True, slots=True)
class Action:
    """The effect of a function. With `waits`, it waits for the lock, otherwise it returns false; `for_transaction`: until its end."""

    kind: Literal["lock", "unlock"]
    shared: bool = False
    waits: bool = False
    for_transaction: bool = False


ACTIONS: dict[str, Action] = {
    f"pg_{'' if waits else 'try_'}advisory_{'xact_' if for_transaction else ''}lock{'_shared' if shared else ''}": Action(
        "lock", shared, waits, for_transaction
    )
    for waits in (True, False)
    for for_transaction in (False, True)
    for shared in (False, True)
} | {f"pg_advisory_unlock{'_shared' if shared else ''}": Action("unlock", shared) for shared in (False, True)}


def _function(name: str, key: tuple[str, ...], *, is_void: bool) -> Function:
    result, note = ("text", "the result is an empty text, not void") if is_void else ("bool", "")
    return Function(name, key, result, volatility="volatile", note=note, by_session=True)


ROWS: tuple[Function, ...] = tuple(_function(name, key, is_void=action.waits) for name, action in ACTIONS.items() for key in _KEYS)
