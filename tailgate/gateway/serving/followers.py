"""Follows relations and queries for TAIL, subscriptions and indexes. Followers of the same thing share a feed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tailgate.gateway.mirrors.entries import Entries
from tailgate.gateway.mirrors.sandbox import Sandbox
from tailgate.gateway.resources.concurrency import REQUESTER, Quota
from tailgate.gateway.resources.threads import started
from tailgate.gateway.serving import following
from tailgate.gateway.serving.failures import translated
from tailgate.gateway.serving.feeds import Feed, QueryResultFeed, feed_of
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.jobs import Jobs
from tailgate.gateway.serving.prepared import Prepared, readable
from tailgate.gateway.serving.progress import Progress
from tailgate.lake.catalog import Item
from tailgate.lake.errors import UndefinedTable
from tailgate.lake.folder import Lake
from tailgate.lake.types import Field
from tailgate.sql.authorization import Authorized, Followed

Result = TypeVar("Result")

FOLLOWING_THREADS = 4  # for decoding large changes of relations
# Followed queries in total, per role, and of the total for superusers only. Each may have its own
# tables, and is evaluated at each tick.
FOLLOWERS, FOLLOWERS_EACH, FOLLOWERS_RESERVE = 1000, 100, 100


class Followers:
    """The followers of a gateway. `feeds`: by key, with the number of followers."""

    def __init__(self, lake: Lake, sandbox: Sandbox, entries: Entries, progress: Progress) -> None:
        self._lake, self._sandbox, self._entries, self._progress = lake, sandbox, entries, progress
        self.jobs = Jobs("tailgate-followed", 4, 2, 8, 3)
        self._threads = started(FOLLOWING_THREADS, "tailgate-follow")
        self._quota = Quota("followed queries", FOLLOWERS, FOLLOWERS_EACH, FOLLOWERS_RESERVE)
        self.feeds: dict[object, tuple[Feed, int]] = {}
        self._received: dict[object, int] = {}  # by follower: the newest entry that it has received
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the threads and closes the feeds."""
        self.jobs.close()
        self._threads.shutdown(cancel_futures=True)
        for feed, _ in self.feeds.values():
            feed.close()

    async def changes(
        self,
        source: Authorized[Followed | Prepared],
        *,
        after: int,
        snapshot: bool,
        values: Sequence[object] = (),
        patient: bool = False,
        columns: tuple[Field, ...] | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """Yields the rows at `after` if `snapshot`, then without end the net changes of each later time.

        A batch has each row at most once. With `patient`, changes wait while a view has errors; the
        error is raised only if it remains at the newest time. `columns` fixes the columns of a
        relation that has got others since.
        """
        item: Item | Prepared
        if isinstance(source.plan, Followed):
            followed = source.plan.item
            if (current := self._progress.catalog.items.get(followed.id)) is None:  # dropped since it was bound
                raise UndefinedTable(f'relation "{followed.name}" does not exist')
            item = readable(current)
            item = item if columns is None else replace(item, columns=columns)
        else:
            item = source.plan
        requester = REQUESTER.get()
        aside = self._decoded
        if isinstance(item, Prepared):
            aside = self._queried
            self._quota.check(requester)
        opening = asyncio.ensure_future(aside(self._feed, item, values, after))
        try:
            feed, shared = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._release_opened)
            raise
        if isinstance(item, Prepared):
            self._quota.opened(requester)
        follower = object()
        self._received[follower] = self._progress.state.n
        try:
            async for batch in following.follow(feed, self._entries, after, snapshot, self._progress, aside, patient):
                yield batch
                self._received[follower] = batch.n  # it has asked for the next one
        finally:
            del self._received[follower]
            if isinstance(item, Prepared):
                self._quota.closed(requester)
            self._release(feed, shared)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Counts a followed query of the requester within the block. Raises 53400 if it follows as many as it may."""
        requester = REQUESTER.get()
        self._quota.check(requester)
        self._quota.opened(requester)
        try:
            yield
        finally:
            self._quota.closed(requester)

    @property
    def entries_behind(self) -> int:
        """Returns how many entries the slowest follower has not received."""
        newest = self._progress.state.n
        return max((newest - n for n in list(self._received.values())), default=0)

    async def entry_at(self, time: int) -> int:
        """Returns the number of the newest entry that is not later than a time."""
        return await self._decoded(self._entries.at, time)

    def check_quota(self) -> None:
        """Raises 53400 if the requester follows as many queries as it may."""
        self._quota.check(REQUESTER.get())

    async def _decoded(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Runs `work` on a thread of the pool that decodes changes of relations."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except Exception as error:
            raise translated(error) from error

    async def _queried(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Runs `work` interruptibly on a thread for followed queries, in the role's turn."""
        return await self.jobs.run(lambda job: work(*arguments))

    def _feed(self, source: Item | Prepared, values: Sequence[object], after: int) -> tuple[Feed, bool]:
        """Returns a feed, and whether it is shared. A query that has moved past `after` is not."""
        feed = feed_of(self._lake, self._sandbox, self._entries, source, values)
        start = self._entries.at(after)
        with self._lock:
            shared_feed, followers = self.feeds.get(feed.key, (feed, 0))
            if isinstance(shared_feed, QueryResultFeed) and shared_feed.n > start:
                return feed, False
            self.feeds[feed.key] = (shared_feed, followers + 1)
            return shared_feed, True

    def _release_opened(self, opening: asyncio.Task[tuple[Feed, bool]]) -> None:
        """Ends the use of a feed whose follower ended while it was being opened."""
        if not opening.cancelled() and opening.exception() is None:
            self._release(*opening.result())

    def _release(self, feed: Feed, shared: bool) -> None:
        """Ends a follower's use of a feed; closes the feed after the last one."""
        with self._lock:
            if shared:
                shared_feed, followers = self.feeds[feed.key]
                if followers > 1:
                    self.feeds[feed.key] = (shared_feed, followers - 1)
                    return
                del self.feeds[feed.key]
        self._threads.submit(feed.close)  # on a thread, because it waits for a running evaluation
