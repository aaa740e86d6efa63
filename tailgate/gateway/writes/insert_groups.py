"""INSERTs of constants into one table by many sessions, evaluated and sent together (group commit).

    session ──► group that waits ──the one before it has been sent──► one evaluation ──► one POST /write ──► each session's answer
    session whose row cannot be part of the group (its key exists, a CHECK fails) ──► evaluated alone, with its own error

A group has the INSERTs of one role into one table. One group of a table is evaluated at a time; the INSERTs that arrive meanwhile are
the next one, so a single session never waits and many sessions share the work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tailgate.gateway.resources.concurrency import REQUESTER
from tailgate.gateway.writes.constraints.keys import repeated
from tailgate.gateway.writes.effects import Effect, Inserted, merged
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.plans import InsertPlan
from tailgate.gateway.writes.rows.constants import Constants, together
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake.catalog import Item
from tailgate.lake.types import Type

GROUP_ROWS_MAX = 500  # rows of a group; the others wait for the next one
MEMBER_ROWS_MAX = 50  # rows of an INSERT that may join a group: larger ones gain little, and would delay others


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of sending a group: the number of the inbox entry, or 0, and the positions of the refused members."""

    number: int
    refused: frozenset[int]


Send: TypeAlias = Callable[[list[Constants]], Awaitable[Sent]]  # evaluates the rows of each member and sends those of the accepted ones
ALL_ALONE = Sent(0, frozenset())


@dataclass(slots=True)
class _Group:
    version: str  # of the table's rules
    types: tuple[Type, ...]
    send: Send
    rows: list[Constants] = field(default_factory=list)
    answers: list[asyncio.Future[int]] = field(default_factory=list)  # of the members
    count: int = 0

    def admits(self, version: str, rows: Constants) -> bool:
        """Tells whether an INSERT was bound to the same form of the table, with the same rules and types, and there is room for it."""
        return version == self.version and rows.types == self.types and self.count + len(rows) <= GROUP_ROWS_MAX

    def add(self, rows: Constants, answer: asyncio.Future[int]) -> None:
        self.rows.append(rows)
        self.answers.append(answer)
        self.count += len(rows)

    def settle(self, sent: Sent) -> None:
        for place, answer in enumerate(self.answers):
            if not answer.done():  # the session of a canceled one has ended
                answer.set_result(0 if place in sent.refused else sent.number)

    def fail(self, error: BaseException) -> None:
        for answer in self.answers:
            if not answer.done():
                answer.set_exception(error)


class InsertGroups:
    """The groups of a gateway, which belong to its event loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], deque[_Group]] = {}  # by role and table; a key exists while a group is evaluated and sent
        self._running: set[asyncio.Task[None]] = set()  # keeps the tasks alive

    def insert(self, table: Item, version: str, rows: Constants, send: Send) -> asyncio.Future[int]:
        """Inserts rows as part of a group. The result is the number of the inbox entry, or 0 if the caller must insert them alone.

        It is the error of `send` if that is one of the request: an error of the rows refuses members. Do not cancel the future: the
        rows may be inserted nevertheless.
        """
        key = (REQUESTER.get().role, table.id)
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = deque()
            task = loop.create_task(self._run(key))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if not waiting or not waiting[-1].admits(version, rows):
            waiting.append(_Group(version, rows.types, send))
        answer: asyncio.Future[int] = loop.create_future()
        waiting[-1].add(rows, answer)
        return answer

    async def _run(self, key: tuple[int, int]) -> None:
        """Evaluates and sends the groups of a table, one after the other, until none waits."""
        waiting = self._waiting[key]
        while waiting:
            group = waiting.popleft()
            try:
                sent = await group.send(group.rows)
            except asyncio.CancelledError:
                for answer in group.answers:
                    answer.cancel()
                raise
            except Exception as error:  # noqa: BLE001  # raised to all members: the rows may have been written
                group.fail(error)
            else:
                group.settle(sent)
        del self._waiting[key]


def evaluate(evaluation: Evaluation, write: InsertPlan, members: list[Constants]) -> tuple[Effect, frozenset[int]] | None:
    """Evaluates the INSERTs of a group. Refuses a member with a key that exists or occurs in an earlier row.

    Returns the effect of the accepted members and the positions of the refused ones, or None if a value does not fit its type.
    Raises the first violation of another constraint.
    """
    table, rules = write.table, write.own
    plain = together(members).table()
    if plain is None:
        return None
    rows = evaluation.stored.computed(rules, fitted(plain, table.columns))
    keyed = evaluation.stored.keyed(rules, rows)
    lists = [places for key in rules.keys for places in (repeated(key, keyed), evaluation.existing(rules, key, keyed))]
    bad = np.concatenate([np.empty(0, np.int64), *lists])
    refused = frozenset[int]()
    if len(bad):
        member_of = np.repeat(np.arange(len(members)), [len(m) for m in members])
        refused = frozenset(member_of[bad].tolist())
        accepted = ~np.isin(member_of, list(refused))
        rows = rows.filter(pa.array(accepted))
    evaluation.violations.allowed(rules, rows)
    changes, read, postponed = evaluation.changes(write.rules, table, Inserted.of(rows))
    keys = merged({table.id: evaluation.key_hashes(rules, rows)}, read)
    return Effect(rows.num_rows, changes, keys, rules=write.rules, postponed=postponed), refused
