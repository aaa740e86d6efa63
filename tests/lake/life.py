"""A random history of a lake without an engine, with a model of the acknowledged writes.

The steps are ticks, statements, writes, rounds and sweeps.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from tailgate.lake.catalog import Change, Item, Subscription, View
from tailgate.lake.errors import CannotConnectNow
from tailgate.lake.folder import Lake
from tailgate.lake.log import segments
from tailgate.lake.log.entry import stream
from tailgate.lake.readers import reading, subscriptions
from tailgate.lake.tables import checkpoints, large, merging
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.inbox import TABLE, Inbox, Record
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import History, add, changes, item, sweep

COLUMNS = (Field("a", INT8), Field("b", TEXT))
KEYED, BAG = item(16384, COLUMNS, (0,)), item(16385, COLUMNS, None)
FEED = Subscription(16386, "feed", depends=(BAG.id,), retention_ms=86_400_000, snapshot=False, progress=False)
ROUNDS_MAX = 5  # attempts of a round
STEPS = ("tick", "large", "statement", "write", "consume", "acknowledge", "round", "sweep")


def short_history(patch: pytest.MonkeyPatch, retain_ms: int = 0) -> None:
    """Makes everything old at once, and lets few rows and entries count as many."""
    for module, name, value in (
        (reading, "RETAIN_HISTORY_MS", retain_ms),
        (segments, "ENTRIES", 3),
        (retention, "ENTRIES", 3),
        (retention, "AGE_MIN_MS", 0),
        (maintenance, "GRACE_S", 0.0),
        (maintenance, "COMMITS_MAX", 3),
        (checkpoints, "RECENT_MS", 0),
        (checkpoints, "SPACING_MS", 1),
        (merging, "FEW_ROWS", 3),
        (large, "ROWS_MIN", 5),
        (large, "SMALL_FILES", 2),
    ):
        patch.setattr(module, name, value)


class Life:
    """A lake under random steps, and a model of it.

    `history`, `inbox_entries` and `acknowledged` hold acknowledged writes. `unknown` holds
    appends that failed, until `check` looks for them in the log.
    """

    def __init__(self, path: Path | str, seed: int = 0, scratch: Path | None = None) -> None:
        self.chance = random.Random(seed)
        self.path = path
        self.scratch = Path(path).parent if scratch is None else scratch
        self.history = History()
        self.inbox_entries: dict[int, bytes] = {}
        self.consumed = 0
        self.acknowledged = 0
        self.keyed: dict[int, str] = {}
        self.unknown: list[Callable[[Lake], None]] = []
        self.views = 0
        self.start()
        if not self.lake.catalog().items:
            self._append({}, kind="catalog", catalog=Change(put=(KEYED, BAG)))
            subscriptions.begin(self.lake, FEED, self.writer.newest.n, self.writer.newest.time)
            self._append({}, kind="catalog", catalog=Change(put=(FEED,)))
            self.acknowledged = subscriptions.place(self.lake, FEED.id).time  # type: ignore[union-attr]

    def start(self) -> None:
        """Starts another engine, which takes over from the previous one."""
        self.lake = Lake.create(self.path)
        self.writer: Writer = open_epoch(self.lake, take_over=True)
        self.inbox = Inbox(self.lake, self.writer.epoch, self.writer.newest.inbox)
        self.follower = Follower(self.lake, self.writer.epoch)

    def step(self, name: str) -> None:
        """Runs the step with this name."""
        getattr(self, name)()

    def tick(self) -> None:
        """Appends random changes of both relations."""
        key = self.chance.randrange(6)
        before, after = self.keyed.get(key), str(self.chance.randrange(100))
        rows = [([key, after], 1), *([([key, before], -1)] if before is not None and before != after else [])]
        if before == after:
            rows = []
        bag = [([self.chance.randrange(3), "x"], 1)]

        def done() -> None:
            self.keyed[key] = after

        self._append({KEYED.id: changes(KEYED, rows), BAG.id: changes(BAG, bag)}, succeeded=done)

    def large(self) -> None:
        """Runs a tick whose changes leave the JVM as a file."""
        table = changes(BAG, [([n, "large"], 1) for n in range(50)])
        path = self.scratch / f"spilled-{self.writer.newest.n}"
        path.write_bytes(stream(table))
        self._append({BAG.id: table}, streams=[(BAG.id, path)])
        path.unlink()

    def statement(self) -> None:
        """Appends a catalog change."""
        self.views += 1
        view = View(16400 + self.views % 3, f"v{self.views}", COLUMNS)
        self._append({}, kind="catalog", catalog=Change(put=(view,)))

    def write(self) -> None:
        """Writes a random record to the inbox."""
        content = f"write {self.chance.random()}".encode()
        number = self.inbox.write([Record(f"{TABLE}1", None, content)])
        self.inbox.check()
        assert number not in self.inbox_entries
        self.inbox_entries[number] = content

    def consume(self) -> None:
        """Runs the tick that reads the inbox."""
        upto = self.inbox.newest
        list(self.inbox.read(self.consumed, upto))
        self._append({}, inbox=upto, succeeded=lambda: self._consumed(upto))
        self.inbox.remove(0, upto)

    def acknowledge(self) -> None:
        """Acknowledges the subscription up to the newest time."""
        time = self.history.entries[-1][0].time
        subscriptions.acknowledge(self.lake, FEED.id, time)
        self.acknowledged = time

    def round(self) -> None:
        """Runs a round: the Delta tables follow the log. Over a bucket it is repeated, as the engine does: requests may fail."""
        for _ in range(ROUNDS_MAX if str(self.path).startswith("s3://") else 0):
            with contextlib.suppress(DeltaError, OSError):
                self.follower.round()
                return
        self.follower.round()

    def sweep(self) -> None:
        """Removes files that are no longer needed."""
        sweep(self.writer)

    def _consumed(self, upto: int) -> None:
        self.consumed = upto

    def _append(
        self,
        changes_by_relation: dict[int, pa.Table],
        *,
        streams: list[tuple[int, Any]] | None = None,
        succeeded: Callable[[], None] = lambda: None,
        **fields: Any,
    ) -> None:
        n = self.writer.newest.n + 1
        epoch = self.writer.epoch

        def found(lake: Lake) -> None:
            """Adds a failed append to the model if it reached the log after all."""
            newest = lake.log.newest()
            if newest is not None and newest.n >= n and lake.log.header(n).epoch == epoch:
                self.history.entries.append((lake.log.header(n), changes_by_relation))
                succeeded()

        self.unknown.append(found)
        header = self.writer.append(streams if streams is not None else list(changes_by_relation.items()), **fields)
        self.unknown.remove(found)
        self.history.entries.append((header, changes_by_relation))
        succeeded()

    # ---- invariants --------------------------------------------------------------------------------------------------------

    def check(self, lake: Lake | None = None) -> None:
        """Checks that the lake has everything that was acknowledged, once, and nothing else."""
        lake = lake or Lake(self.path)
        for check in self.unknown:
            check(lake)
        self.unknown.clear()
        newest = lake.log.newest()
        assert newest is not None
        assert newest.n >= self.history.entries[-1][0].n
        self.history.check(lake, KEYED, BAG)
        for relation in (KEYED, BAG):
            assert self.history.at(relation.id, newest.time) == _now(lake, relation)
        assert newest.inbox == self.consumed
        place = subscriptions.place(lake, FEED.id)
        assert place is not None
        assert place.stopped is None
        assert place.time >= self.acknowledged
        assert place.time >= reading.since(lake)
        assert [e.header.n for e in lake.log.after(lake.log.first() - 1)] == list(range(lake.log.first(), newest.n + 1))
        for n in range(lake.log.first(), newest.n + 1):
            assert {KEYED.id, BAG.id, FEED.id} <= set(Lake(lake.location).catalog_at(n).items) or n <= 3

    def check_inbox(self, inbox: Inbox) -> None:
        """Checks that every acknowledged write that no tick has read is in the inbox."""
        for number, content in self.inbox_entries.items():
            if number > self.consumed:
                (record,) = inbox.read(number - 1, number)
                assert record.value == content

    def resume(self, path: Path | str | None = None) -> None:
        """Continues after a crash: starts another engine, checks the lake, and runs more steps."""
        self.path = path or self.path
        with contextlib.suppress(CannotConnectNow):  # the gateway waits if it is faster than the engine
            self.check()
        self.start()
        self.follower.round()
        self.check()
        self.check_inbox(self.inbox)
        self.inbox_entries = {n: c for n, c in self.inbox_entries.items() if n > self.consumed}
        for number in range(self.consumed + 1, self.inbox.newest + 1):  # includes writes that were not acknowledged
            for record in self.inbox.read(number - 1, number):  # none if the write has failed
                self.inbox_entries.setdefault(number, bytes(record.value or b""))
        self.check(self.lake)
        for name in ("tick", "round", "write", "consume", "statement", "tick", "round", "sweep", "tick", "round", "sweep"):
            self.step(name)
        self.check()


def _now(lake: Lake, relation: Item) -> Any:
    from tests.lake.relations import snapshot

    return snapshot(lake, relation)


__all__ = ["BAG", "FEED", "KEYED", "STEPS", "Life", "add", "short_history"]
