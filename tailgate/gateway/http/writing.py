"""Executes the statements of endpoints that write, each outside a transaction.

evaluate on the mirrors ──► response, row of the key ──► POST /write ──conflict──► wait until the mirrors have it ──► evaluate again
└── the key has a response ──► that response            └── number ──► wait until the mirrors have the rows ──► response
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import duckdb

from tailgate.gateway.http.bound_endpoints import BoundWrite, bind_keys
from tailgate.gateway.http.idempotency import EXPIRE_S, EXPIRED_MAX, Key, Keys
from tailgate.gateway.http.reading import json_objects
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.writes.conflicts import Conflict, accepted
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.effects import Effect
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.pending import Pending
from tailgate.gateway.writes.plans import ChangePlan, InsertPlan
from tailgate.gateway.writes.rows.row_queries import CallEvaluator
from tailgate.lake.catalog import Sequence as SequenceItem
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import FeatureNotSupported, NoData, ProgramLimitExceeded, TailgateError, UndefinedTable
from tailgate.sql.authorization import Authorized, Followed, authorize, shared
from tailgate.sql.plan.session_calls import SessionCall
from tailgate.values.codec.style import DEFAULT

ROWS_MAX = 1_000  # of RETURNING in one response


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request: a JSON object or an array. `replayed`: it is that of an earlier request with the same key."""

    status: int
    body: bytes
    rows: int = 0
    replayed: bool = False


Evaluated: TypeAlias = tuple[Answer, list[Effect]]


class EndpointWriter:
    """Executes bound statements."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._serving = gateway, gateway.serving
        self._keys = Keys()

    async def run(self, bound: BoundWrite, role: int, values: Sequence[object], key: Key | None) -> Answer:
        """Executes a statement for a role. On return its rows are readable at this gateway. Raises 40001 after too many conflicts.

        Without a row, INSERT raises 02000 as do UPDATE and DELETE of one row; then nothing is written.
        """
        progress = self._serving.progress

        async def attempt(reserve: str) -> Answer | Conflict:
            catalog, base = progress.catalog, progress.inbox
            caller = catalog.all_roles()[role]
            answer, effects = await self._evaluated(authorize(bound, caller, catalog), caller, values, key)
            pending = Pending()
            for effect in effects:
                pending.add(effect, base)
            if not pending.durable:
                return answer
            sent = await self._gateway.control.write(pending.body(progress.catalog, reserve))
            if sent.conflict:
                return Conflict(sent.conflict)
            await progress.wait_inbox(sent.number)
            return answer

        return await accepted(progress.wait_inbox, attempt)

    async def _evaluated(self, authorized: Authorized[BoundWrite], caller: Role, values: Sequence[object], key: Key | None) -> Evaluated:
        """Returns the response and the effects of an evaluation."""
        bound, catalog, sequences = authorized.plan, self._serving.progress.catalog, self._sequences()
        shown = ShownValues(catalog, caller)

        def work(cursor: duckdb.DuckDBPyConnection) -> Evaluated:
            earlier, expired = (None, None) if key is None else self._keys.find(cursor, bound.keys, key)
            if earlier is not None:
                return Answer(earlier.status, earlier.body, replayed=True), []
            effect = Evaluation(cursor, values, DEFAULT, shown, sequences).run(bound.plan)
            answer = _answer(bound, effect)
            if key is None:
                return answer, [effect]
            assert expired is not None
            return answer, [effect, self._keys.effect(bound.keys, key, answer.status, answer.body, expired)]

        ids = bound.plan.relations | ({bound.keys.table.id} if key is not None else set())
        if any(id not in catalog.items for id in ids):
            raise UndefinedTable("a table of the statement does not exist")
        return await self._serving.queries.write(authorized, [catalog[id] for id in sorted(ids)], work)

    def _sequences(self) -> CallEvaluator:
        """Returns the function that evaluates nextval, from a thread."""
        loop = asyncio.get_running_loop()
        return lambda calls, arguments, rows: asyncio.run_coroutine_threadsafe(self._numbers(calls, rows), loop).result()

    async def _numbers(self, calls: tuple[SessionCall, ...], rows: int) -> list[Sequence[object]]:
        """Returns the values of calls of nextval for this number of rows, in the order of rows and calls. Raises 0A000 for others."""
        if (other := next((call.name for call in calls if not call.is_reservable), None)) is not None:  # of a default that is newer
            raise FeatureNotSupported(f"{other} in an endpoint is not supported", hint="A request has no session.")
        ids, catalog = [call.sequence for call in calls], self._serving.progress.catalog
        numbers: dict[int, list[int]] = {}
        for id in dict.fromkeys(ids) if rows else ():
            sequence = catalog.items.get(id)
            if not isinstance(sequence, SequenceItem):
                raise UndefinedTable("a sequence that the statement uses was dropped")
            numbers[id] = await self._gateway.ranges.take(sequence, rows * ids.count(id))
        return [numbers[id][ids[:i].count(id) :: ids.count(id)] if rows else [] for i, id in enumerate(ids)]

    # ---- expired keys

    async def expire(self) -> None:
        """Removes expired keys from time to time, without end. Another gateway may remove the same keys; one of them has a conflict."""
        while True:
            with contextlib.suppress(TailgateError):  # the next attempt is soon
                while await self.remove_expired() == EXPIRED_MAX:
                    pass
            await asyncio.sleep(EXPIRE_S)

    async def remove_expired(self) -> int:
        """Removes some expired keys and returns their number."""
        progress = self._serving.progress
        base, rules = progress.inbox, await self._serving.workers.run_bounded(bind_keys, progress.catalog)
        if rules is None:
            return 0
        plan = shared(Followed(rules.table))  # of the gateway itself
        effect = await self._serving.queries.write(plan, [rules.table], lambda cursor: self._keys.expired(cursor, rules))
        if effect is None:
            return 0
        pending = Pending()
        pending.add(effect, base)
        sent = await self._gateway.control.write(pending.body(progress.catalog, ""))
        if sent.conflict:
            return 0
        await progress.wait_inbox(sent.number)
        return int(effect.changes[rules.table.id].num_rows)


def _answer(bound: BoundWrite, effect: Effect) -> Answer:
    """Returns the response for an effect."""
    assert effect.returned is not None
    rows = effect.returned.num_rows
    if rows > ROWS_MAX:
        raise ProgramLimitExceeded(f"the statement of the endpoint returns {rows} rows; {ROWS_MAX} are the most")
    if bound.single and not rows:
        raise NoData("no row was inserted" if isinstance(bound.plan, InsertPlan) else "no row has this key")
    objects = json_objects(bound, effect.returned)
    body = objects[0] if bound.single else b"[" + b",".join(objects) + b"]"
    return Answer(200 if isinstance(bound.plan, ChangePlan) else 201, body, rows)
