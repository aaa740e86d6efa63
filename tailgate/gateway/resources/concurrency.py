"""Limits of concurrent work: in total and per role, with a reserve for superusers.

Turns are granted in the order of requests. A request whose role has reached its limit is passed over until that role releases a turn,
so it delays only its own role. Work that takes long moves to a separate set of turns (`lengthen`), which frees its turn for short work.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType

from tailgate.lake.errors import ConfigurationLimitExceeded

RESERVE = 4  # additional turns for superusers


@dataclass(frozen=True, slots=True)
class Requester:
    """The role, by its id, for which work runs."""

    role: int
    superuser: bool


NOBODY = Requester(0, True)  # the gateway itself
REQUESTER: ContextVar[Requester] = ContextVar("asking", default=NOBODY)  # the role of the current task


@dataclass(eq=False)
class Permit:
    """The permission to run, held until `release` or until the end of a `with` block. `long`: it is one for long work."""

    turns: Limiter
    requester: Requester
    waiting: asyncio.Future[None] | None = field(default=None, repr=False)
    long: bool = False
    released: bool = False

    def lengthen(self, again: float) -> None:
        """Exchanges the turn for one for long work. If none is free, tries again every `again` seconds."""
        if not self.released and not self.long and not self.turns.moved(self):
            asyncio.get_running_loop().call_later(again, self.lengthen, again)

    def release(self) -> None:
        """Returns the turn. A second call has no effect."""
        if not self.released:
            self.released = True
            self.turns.give_back(self)

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()


class _Places:
    """Counters of concurrent work: at most `most` in total, with RESERVE more for superusers, and at most `each` per role."""

    def __init__(self, most: int, each: int) -> None:
        self.most, self.each = most, each
        self._taken: Counter[int] = Counter()

    def free(self, requester: Requester) -> bool:
        most = self.most + (RESERVE if requester.superuser and self.most else 0)
        return self._taken[requester.role] < self.each and self._taken.total() < most

    def take(self, requester: Requester) -> None:
        self._taken[requester.role] += 1

    def give_back(self, requester: Requester) -> None:
        self._taken[requester.role] -= 1
        if not self._taken[requester.role]:
            del self._taken[requester.role]


class Quota:
    """A limit of open objects: `most` in total, of which `reserve` are for superusers, and `each` per role, except superusers.

    `what`: the name of the objects, in the plural, for error messages.
    """

    def __init__(self, what: str, most: int, each: int, reserve: int) -> None:
        self._what, self.most, self.each, self.reserve = what, most, each, reserve
        self._open: Counter[Requester] = Counter()

    def check(self, requester: Requester) -> None:
        """Raises 53400 if another object may not be opened."""
        if not requester.superuser and self._open[requester] >= self.each:
            raise ConfigurationLimitExceeded(
                f"too many {self._what}", detail=f"A role can have {self.each} open at once.", hint="Close some of them."
            )
        if self._open.total() >= self.most - (0 if requester.superuser else self.reserve):
            raise ConfigurationLimitExceeded(
                f"too many {self._what}", detail=f"{self.most} can be open at once, {self.reserve} of them of superusers alone."
            )

    def opened(self, requester: Requester) -> None:
        self._open[requester] += 1

    def closed(self, requester: Requester) -> None:
        self._open[requester] -= 1
        if not self._open[requester]:
            del self._open[requester]


class Limiter:
    """The turns of one event loop.

    `most` and `each`: the limits of short work, in total and per role. `long` and `long_each`: those of long work.
    """

    def __init__(self, most: int, each: int, long: int = 0, long_each: int = 0) -> None:
        self._short, self._long = _Places(most, each), _Places(long, long_each)
        self._waiting: deque[Permit] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def take(self, requester: Requester) -> Permit:
        """Waits for a turn."""
        turn = self.try_take(requester)
        if turn is not None:
            return turn
        turn = Permit(self, requester, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        assert turn.waiting is not None
        try:
            await turn.waiting
        except asyncio.CancelledError:
            if turn.waiting.done() and not turn.waiting.cancelled():
                turn.release()  # it was granted just before the cancellation
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise
        return turn

    def try_take(self, requester: Requester) -> Permit | None:
        """Returns a turn if one is free for this role now, or None."""
        if not self._short.free(requester):
            return None
        self._short.take(requester)
        return Permit(self, requester)

    def moved(self, turn: Permit) -> bool:
        """Exchanges a turn for one for long work. Returns False if none is free."""
        if not self._long.free(turn.requester):
            return False
        self._long.take(turn.requester)
        turn.long = True
        self._short.give_back(turn.requester)
        self._next()
        return True

    def give_back(self, turn: Permit) -> None:
        (self._long if turn.long else self._short).give_back(turn.requester)
        if not turn.long:
            self._next()

    def _next(self) -> None:
        for turn in list(self._waiting):
            if self._short.free(turn.requester):
                self._waiting.remove(turn)
                assert turn.waiting is not None
                if not turn.waiting.done():
                    self._short.take(turn.requester)
                    turn.waiting.set_result(None)
                    return
