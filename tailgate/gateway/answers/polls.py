"""The cache of results of statements that clients send repeatedly (polls).

    text, parameters, formats, style ──► Poll: bytes of one time ──► the same bytes for all clients until a dependency changes
                                           ▲ refreshed right after each tick while clients poll it

The cached bytes of a poll are valid at the mirrors' time only. When the mirrors advance, the bytes remain valid if the statement's
relations have not changed. Other recently used polls are refreshed immediately, within a time budget. If the budget is exhausted, or
the last run took longer than REFRESH_S_MAX, the statement runs on a thread at the next request, once for all concurrent requests.
A poll whose rows each depend on one row of one relation is not run again: the changes of the tick are applied to its rows
(`live_queries`, `live_rows`).

Measured on one core: 2-4 µs from key to bytes, 0.3-1 ms to refresh a statement over a small view.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time as clocks
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tailgate.gateway.answers.live_queries import LiveQuery, live_query
from tailgate.gateway.answers.live_rows import LiveRows
from tailgate.gateway.encode.rows import RowEncoder
from tailgate.gateway.mirrors.state import State
from tailgate.gateway.protocol import backend
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.service import Serving
from tailgate.lake.errors import OutOfMemory, QueryCanceled, TailgateError
from tailgate.sql.authorization import Authorized

log = logging.getLogger("tailgate.gateway")

POLLS_MAX = 4096  # cached statements, all of which are checked after each tick
POLL_BYTES_MAX = 1024 * 1024  # larger results are not cached: a thousand of them would be a gigabyte
BYTES_MAX = 128 * 1024 * 1024  # of all cached results, their keys and their plans
POLL_BYTES = 2 * 1024  # overhead of a cached statement
REFRESH_BUDGET_S = 0.008  # time in the event loop after each tick; polls wait for it, and their promised p95 is below 10 ms
REFRESH_S_MAX = 0.004  # time of one statement in the event loop
REFRESH_ROWS_MAX = 5_000  # larger results are computed on a thread at the next request: DuckDB and encoding take milliseconds
HOT_TICKS = 30  # ticks without a request after which a statement is not refreshed: 3 s at 10 ticks/s


@dataclass(slots=True)
class Poll:
    """A cached result.

    `rows`: DataRows and CommandComplete. `ready`: the complete response to a simple Query. `time`: -1 if the result is out of date.
    `query` was authorized for the role that sent it first. Other roles are authorized before they receive the bytes. `refreshed`: after
    ticks, if the statement is short. Look-ups by key are not: each client sends others, and their index answers most of them.
    `live_query`: if ticks can update its rows, which is known after the first run (`is_known`). `live`: these rows.
    """

    query: Authorized[Prepared]
    values: Sequence[object]
    encoder: RowEncoder
    description: bytes
    refreshed: bool = True
    live_query: LiveQuery | None = None
    is_known: bool = False
    live: LiveRows | None = None
    rows: bytes = b""
    ready: bytes = b""
    count: int = 0
    time: int = -1
    hits: int = 0  # since the last tick
    idle: int = 0  # ticks without a hit
    took: float = 0.0  # seconds of the last run
    size: int = 0  # bytes that are charged for it


class Polls:
    """The cached results of a gateway."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._polls: OrderedDict[Hashable, Poll] = OrderedDict()
        self._making: dict[Hashable, asyncio.Future[Poll | pa.Table]] = {}
        self._plans = Counter[int]()  # by id() of a plan: the cached results that have it
        self._bytes = 0
        self._lock = threading.RLock()  # `_evict` is called from other threads
        serving.budget.evictable(self._evict)
        serving.progress.on_advance(self.advance)

    @property
    def size(self) -> tuple[int, int]:
        """Returns the number of cached results and their bytes."""
        return len(self._polls), self._bytes

    def find(self, key: Hashable) -> Poll | None:
        """Returns the cached result if it is valid at the mirrors' time, or None."""
        poll = self._polls.get(key)
        if poll is None or poll.time != self._serving.progress.time:
            return None
        poll.hits += 1
        return poll

    async def get(
        self,
        key: Hashable,
        query: Authorized[Prepared],
        values: Sequence[object],
        encoder: RowEncoder,
        description: bytes,
        *,
        refreshed: bool = True,
    ) -> Poll | pa.Table:
        """Runs the statement, once for concurrent requests. Returns the rows instead of a `Poll` if they are not cacheable.

        `refreshed`: as of `Poll`.
        Raises `Again` in the waiting requests if the request that runs the statement is canceled.
        """
        making = self._making.get(key)
        if making is None:
            await asyncio.sleep(0)  # the mirrors may have advanced, with their callback still pending
            poll = self._polls.get(key)
            if poll is not None and poll.live is not None and poll.time != self._serving.progress.time:
                self._catch_up(key, poll, poll.live)
            if (poll := self.find(key)) is not None:
                return poll
            making = self._making.get(key)
        if making is not None:
            return await asyncio.shield(making)
        making = self._making[key] = asyncio.get_running_loop().create_future()
        try:
            poll = self._polls.get(key)
            if poll is None or poll.query.plan is not query.plan:
                self._drop(key)
                poll = Poll(query, values, encoder, description, refreshed)
            else:
                _recognize(poll)
            result = await self._make(key, poll)
        except BaseException as error:
            # Requests that wait for the future run the statement again if only this request was canceled.
            making.set_exception(Again() if isinstance(error, asyncio.CancelledError) else error)
            making.exception()
            raise
        else:
            making.set_result(result)
            return result
        finally:
            del self._making[key]

    async def _make(self, key: Hashable, poll: Poll) -> Poll | pa.Table:
        """Runs the statement of a poll, which becomes the cached result."""
        began, plan = clocks.perf_counter(), poll.query.plan
        live, time = await self._live(poll)
        if live is not None:
            count, rows = live.count, live.data_rows()
        else:
            time = self._serving.progress.time
            table = await self._serving.queries.run(poll.query, poll.values)
            if plan.volatile or table.nbytes > POLL_BYTES_MAX:
                return table
            count, rows = table.num_rows, poll.encoder.data_rows(table)
        poll.live, poll.took = live, clocks.perf_counter() - began
        if live is None or not self._catch_up(key, poll, live):
            state = self._serving.progress.state
            # after a change of the catalog the text may have another meaning
            present = (time, plan.catalog_n) == (state.time, state.catalog_n)
            self._fill(poll, count, rows, time if present else -1)
            self._keep(key, poll)
        poll.hits += 1
        return poll

    async def _live(self, poll: Poll) -> tuple[LiveRows | None, int]:
        """Reads rows that ticks can update, and returns them with their time, or None."""
        query = poll.live_query
        table = None if query is None else self._serving.mirrors.table_of(query.relation)
        if query is None or table is None:
            return None, 0
        if table.rows > query.relation_rows_max or _keeps_too_much(poll, query, table.rows):
            poll.live_query = None
            return None, 0
        n, time, rows = await self._serving.queries.read_at_entry(poll.query, query.first)
        live = None if rows is None else LiveRows(query, poll.encoder, n)
        if live is None or not live.fill(rows):
            poll.live_query = live = None
        return live, time

    def _fill(self, poll: Poll, count: int, rows: bytes, time: int) -> None:
        poll.count = count
        poll.rows = rows + backend.command_complete(f"SELECT {count}")
        poll.ready = b"".join((poll.description, poll.rows, backend.READY_FOR_QUERY["I"]))
        poll.time = time

    def _keep(self, key: Hashable, poll: Poll) -> None:
        """Caches a poll as the most recently used one, if there is memory for it."""
        size = POLL_BYTES + len(poll.rows) + len(poll.ready) + _bytes_of(key)
        if poll.live is not None:
            size += poll.live.bytes
        with self._lock:
            more = size - poll.size + (0 if poll.size else self._hold(poll.query.plan))
        self._evict(self._bytes + more - BYTES_MAX, but=poll)
        try:
            self._serving.budget.charge(more)
        except OutOfMemory:
            with self._lock:
                if not poll.size:
                    self._let_go(poll.query.plan)
            self._drop(key)
            return
        with self._lock:
            self._bytes += more
            poll.size = size
            self._polls[key] = poll
            self._polls.move_to_end(key)
            if len(self._polls) > POLLS_MAX:
                self._drop(next(iter(self._polls)))

    def _drop(self, key: Hashable) -> None:
        with self._lock:
            poll = self._polls.pop(key, None)
            if poll is not None:
                size = poll.size + self._let_go(poll.query.plan)
                self._bytes -= size
                self._serving.budget.release(size)
                poll.size = 0

    def _hold(self, plan: Prepared) -> int:
        """Counts a result of a plan. Returns the bytes of the plan if it is the first one."""
        self._plans[id(plan)] += 1
        return plan.size if self._plans[id(plan)] == 1 else 0

    def _let_go(self, plan: Prepared) -> int:
        """Undoes one `_hold`. Returns the bytes of the plan if no result has it any more."""
        self._plans[id(plan)] -= 1
        if self._plans[id(plan)]:
            return 0
        del self._plans[id(plan)]
        return plan.size

    def _evict(self, size: int, but: Poll | None = None) -> int:
        """Evicts the oldest polls until `size` bytes are free. Returns the freed bytes. Safe from any thread."""
        with self._lock:
            before = self._bytes
            for key, poll in list(self._polls.items()) if size > 0 else ():
                if before - self._bytes >= size:
                    break
                if poll is not but:
                    self._drop(key)
            return before - self._bytes

    def advance(self, time: int) -> None:
        """Revalidates or refreshes the polls. Called when the mirrors advance, before any poll is answered at the new time."""
        deadline, state = clocks.perf_counter() + REFRESH_BUDGET_S, self._serving.progress.state  # before the check of any relation
        stale: list[tuple[Hashable, Poll]] = []
        changes_by_relations: dict[tuple[object, ...], bool] = {}  # one check for all statements with the same relations
        with self._lock:
            polls = list(self._polls.items())
        for key, poll in polls:
            poll.idle = 0 if poll.hits else poll.idle + 1
            poll.hits = 0
            changed = True
            if poll.time >= 0:
                prepared = poll.query.plan
                same = (prepared.relations, prepared.catalog_n, poll.time)
                if same not in changes_by_relations:
                    changes_by_relations[same] = self._serving.progress.changed_since(prepared, poll.time)
                changed = changes_by_relations[same]
            if not changed:
                poll.time = time
                if poll.live is not None:
                    poll.live.n = max(poll.live.n, state.n)
            else:
                poll.time = -1
                if poll.refreshed and poll.idle < HOT_TICKS:
                    stale.append((key, poll))
                else:
                    poll.live = None
        stale.sort(key=lambda pair: pair[1].idle)
        with self._serving.queries.bounded_now():
            for key, poll in stale:
                if clocks.perf_counter() > deadline:
                    return
                _recognize(poll)
                if poll.live is not None:
                    self._advance(key, poll, poll.live)
                elif poll.live_query is None:  # otherwise the next request runs it, and later ticks update its rows
                    self._refresh(key, poll, time)

    def _catch_up(self, key: Hashable, poll: Poll, live: LiveRows) -> bool:
        """Does the same as `_advance`, for a request."""
        with self._serving.queries.bounded_now():
            return self._advance(key, poll, live)

    def _advance(self, key: Hashable, poll: Poll, live: LiveRows) -> bool:
        """Applies the newest ticks to the rows of a poll. Returns False if that is not possible: the next request runs it again."""
        state, rows, began = self._serving.progress.state, None, clocks.thread_time()
        try:
            rows = self._advanced(poll.query.plan, live, state)
        except (duckdb.Error, OutOfMemory):  # the next request raises it, if the statement has it
            pass
        except Exception:
            log.exception("the changes of a tick could not be applied to a poll")
        if rows is None or len(rows) > POLL_BYTES_MAX:
            poll.live = None
            return False
        if clocks.thread_time() - began > REFRESH_S_MAX:
            poll.live = None
        self._fill(poll, live.count, rows, state.time)
        self._keep(key, poll)
        return True

    def _advanced(self, plan: Prepared, live: LiveRows, state: State) -> bytes | None:
        """Returns the rows of a poll at a state of the mirrors, or None if the ticks cannot be applied."""
        queries, entries = self._serving.queries, self._serving.progress.entries_after(live.n)
        if entries is None or plan.catalog_n != state.catalog_n or not queries.ready(plan):
            return None
        if not state.failing.isdisjoint(plan.relations):
            return None
        newer = (entry for entry in entries if entry.header.n <= state.n)
        return live.data_rows() if live.advance(newer, queries.compute_now) else None

    def _refresh(self, key: Hashable, poll: Poll, time: int) -> None:
        """Runs a poll again, in the event loop. Skips statements that are slow, large or not in memory."""
        prepared = poll.query.plan
        if (
            poll.took > REFRESH_S_MAX
            or poll.count > REFRESH_ROWS_MAX
            or prepared.catalog_n != self._serving.progress.catalog_n
            or not self._serving.queries.ready(prepared)
        ):
            return
        began = clocks.perf_counter()
        try:
            table = self._serving.queries.run_now(poll.query, poll.values)
        except TailgateError as error:
            if isinstance(error, QueryCanceled):
                poll.took = float("inf")  # too slow to refresh again
            return  # the next request runs the statement and reports the error
        except Exception:
            log.exception("a poll could not be refreshed")
            self._drop(key)
            return
        poll.took = clocks.perf_counter() - began
        if table.nbytes <= POLL_BYTES_MAX:
            self._fill(poll, table.num_rows, poll.encoder.data_rows(table), time if time == self._serving.progress.time else -1)
            self._keep(key, poll)


def _recognize(poll: Poll) -> None:
    """Finds out whether ticks can update the rows of a poll, before it is run again."""
    if not poll.is_known:
        poll.is_known = True
        poll.live_query = live_query(poll.query.plan, poll.values) if poll.refreshed else None


def _keeps_too_much(poll: Poll, query: LiveQuery, relation_rows: int) -> bool:
    """Returns whether the rows up to LIMIT and those kept behind them are too large, if they are as wide as those of the last run."""
    kept = min(query.kept, relation_rows) if query.stop < math.inf else poll.count
    return len(poll.rows) * kept > POLL_BYTES_MAX * max(poll.count, 1)


def _bytes_of(key: Hashable) -> int:
    """Returns the bytes of a statement's text and values in a key."""
    if isinstance(key, bytes | str):
        return len(key)
    return sum(map(_bytes_of, key)) if isinstance(key, tuple) else 0


class Again(Exception):
    """The request that ran a statement for several others was canceled. The others try again."""
