"""One sink, from its registration to its drop: a thread that tries again until it is told to end.

    session ──► claim ──► snapshot, in pieces ──► steps, in batches ──► wait for the log ─┐
       ▲                                              ▲                                   │
       │ pause                                        └───────────────────────────────────┘
       └── broker or registry absent, disk full: `retrying`         replaced, refused, log gone: `stopped`

Where it is stands in Kafka, in the transaction of the events. The lake's copy of it keeps the log from there, tells SHOW SINKS,
and is ahead of Kafka only over entries in which the relation did not change.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lake import Lake, crash
from lake.catalog import Item
from lake.errors import ConfigurationLimitExceeded, IoError, ObjectNotInPrerequisiteState, TailgateError, from_system
from lake.events import Part, schema
from lake.types import Field
from sinks import consistency, forms, protobuf, registry
from sinks.consistency import Mark
from sinks.copies import Copy, Status
from sinks.envelope import Encoder, Event
from sinks.failures import Fenced, Replaced
from sinks.follower import Follower
from sinks.forms import Form
from sinks.progress import Progress, topic
from sinks.reading import Reader, Step
from sinks.session import Session
from sinks.settings import Opened, Settings, settings

SNAPSHOT_PIECE = 10_000  # events of a snapshot in one transaction: 0.1 s of work to repeat after a crash
BATCH_EVENTS = 10_000  # a batch of steps is committed when it has this many; one step is never cut

RETRY_FIRST = timedelta(seconds=0.25)  # pauses between sessions double from the first to the last
RETRY_LAST = timedelta(seconds=5)

COPY_INTERVAL = timedelta(seconds=1)  # writing the copy takes 1 ms, a busy log has six ticks a second
IDLE_WAIT = timedelta(seconds=60)  # a worker with nothing to write wakes by itself this often


@dataclass(frozen=True, slots=True)
class Begin:
    """The entry at which the sink was created, and its time."""

    n: int
    time: int


class Worker(threading.Thread):
    """Runs until `end()`, until the sink is dropped, or until it may not go on."""

    def __init__(
        self, lake: Lake, item: Item, relation: Item, begin: Begin, follower: Follower, instance: str, opened: Opened = dict
    ) -> None:
        super().__init__(name=f"sink {item.name}", daemon=True)
        self.item = item
        self._opened = opened
        self._lake = lake
        self._relation = replace(relation, columns=relation.columns[: item.widths.get(relation.id)])
        self._begin = begin
        self._follower = follower
        self._instance = instance
        self._ending = threading.Event()
        self._dropped = False
        self._encoder: Encoder | None = None
        self._pause = RETRY_FIRST
        self._copy = Copy(lake, item.id)
        copy = self._copy.position()
        n, reached = (begin.n, begin.time) if copy is None else (copy.n, copy.time)
        self._position = Progress(n, reached, 0, copy is not None and copy.filled, instance)
        self._claimed = copy is not None and copy.claimed  # whether Kafka has a progress record of this sink
        self._failing = False  # nothing can be written at the moment
        self._reported: tuple[Status, str, bool, int] | None = None
        self._reported_at = 0.0

    def end(self, *, dropped: bool = False) -> None:
        """It ends after the transaction it is in; if dropped, after the last changes before the drop, or at once if it cannot write."""
        self._dropped = self._dropped or dropped
        if not dropped or self._failing:
            self._ending.set()
        self._follower.wake()

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                if not self._life():
                    return
            if self._dropped:
                self._copy.remove()
            else:
                self._report("stopped", "")
        except Replaced as error:
            _say(f"sink {self.item.name}: {error.message}")  # the copy is the other process's now
        except TailgateError as error:
            self._stopped(f"{error.sqlstate}: {error.message}")
        except Exception as error:  # noqa: BLE001  # our own bug ends this sink alone, loudly
            traceback.print_exc()
            self._stopped(f"XX000: {error}")

    def _stopped(self, error: str) -> None:
        """Reports that the sink does not go on, again and again while the file system fails."""
        self._failing = True
        while not self._report("stopped", error) and not self._ending.wait(RETRY_LAST.total_seconds()):
            pass
        if self._dropped:
            self._copy.remove()

    def _life(self) -> bool:
        """One session, from its opening to its failure. Whether there is to be another."""
        chosen = settings(self.item, self._opened)
        session: Session | None = None
        try:
            encoder = self._encoder = self._encoder or self._registered(chosen)
            session = Session(chosen, self._lake.id, self.item.id, self._instance, self._ending.is_set)
            session.open()
            self._claim(session, chosen)
            return self._follow(session, encoder)
        except Fenced:
            assert session is not None
            try:
                session.fenced()
            except TailgateError as error:
                if not error.retriable:
                    raise
                self._retry(error)
        except TailgateError as error:
            if not error.retriable:
                raise
            self._retry(error)
        except OSError as error:  # of the lake's file system: a full disk, say
            self._retry(from_system(error) or IoError(str(error)))
        finally:
            if session is not None:
                session.close()
        return True

    def _retry(self, error: TailgateError) -> None:
        self._failing = True
        if self._dropped:
            self._ending.set()
        self._report("retrying", f"{error.sqlstate}: {error.message}")
        self._ending.wait(self._pause.total_seconds())
        self._pause = min(2 * self._pause, RETRY_LAST)

    def _registered(self, chosen: Settings) -> Encoder:
        """The encoder, once the schemas of what has some have their ids."""
        columns = self._relation.columns

        def register(part: str, of: dict[str, object] | str) -> int:
            subject = f"{chosen.topic}-{part}"
            if part in chosen.compatibility:
                registry.compatibility(chosen.registry, chosen.registry_access, subject, chosen.compatibility[part])
            return registry.register(chosen.registry, chosen.registry_access, subject, of)

        def form(kind: str, part: Part, columns: Sequence[Field], name: str) -> Form:
            if kind == "json":
                return forms.Json()
            if kind == "text":
                return forms.Text()
            id = register(part, schema(kind, part, columns, chosen.envelope, name))
            return protobuf.Protobuf(id) if kind == "protobuf" else forms.Avro(id, id)

        key_form = None
        if chosen.key is not None:
            key_form = form(chosen.key_format, "key", [columns[i] for i in chosen.key], chosen.key_name)
        value_form = form(chosen.value_format, "value", columns, chosen.value_name)
        keys = {"key": chosen.key, "key_form": key_form, "relation_key": self._relation.key}
        return Encoder(columns, chosen.envelope, value_form, **keys, headers=chosen.headers, constant=chosen.constant_headers)

    def _claim(self, session: Session, chosen: Settings) -> None:
        """The position to go on from, and a first transaction that says so."""
        copy = self._copy.position()
        if (reason := self._copy.stopped()) is not None:
            held = f"the log is no longer kept for sink {self.item.name}: {reason}"
            raise ConfigurationLimitExceeded(held, hint="Drop the sink and create it again.")
        found = session.progress
        if found is None:
            if self._claimed:
                raise ObjectNotInPrerequisiteState(
                    f"Kafka has lost the progress of sink {self.item.name}",
                    detail=f"The topic {topic(self._lake.id)} has no record of it.",
                    hint="Drop the sink and create it again.",
                )
            found = Progress(self._begin.n, self._begin.time, 0, not chosen.snapshot, self._instance)
        elif found.filled and copy is not None and copy.n > found.n:
            found = replace(found, n=copy.n, time=copy.time)
        self._position = replace(found, instance=self._instance)
        session.commit([], self._position)
        crash.point("sink.claimed")
        self._claimed = True
        self._failing = False
        self._report("running", "")
        self._pause = RETRY_FIRST

    def _follow(self, session: Session, encoder: Encoder) -> bool:
        at, relation = self._position, self._relation
        reader = Reader(self._lake, self.item.id, relation.id, relation.errors, at.n, at.time, relation.columns)
        if not at.filled and reader.error is None:
            self._snapshot(session, encoder, at)
        while not self._ending.is_set():
            batch: list[Event] = []
            marks: list[Mark] = []
            step: Step | None = None
            for step in reader.steps():
                if step.dropped:
                    session.commit(batch, None)
                    self._copy.remove()
                    return False
                if not self._position.filled:  # the view had errors when the sink was made
                    self._snapshot(session, encoder, replace(self._position, n=step.n, time=step.time))
                    continue
                if step.changes is not None:
                    events = encoder.events(step.changes)
                    batch += events
                    marks += consistency.marks(session.settings, step.time, len(events))
                if len(batch) >= BATCH_EVENTS:
                    self._advance(session, batch, step, marks)
                    batch, marks = [], []
                if self._ending.is_set():
                    break
            if step is not None:
                self._advance(session, batch, step, marks)
            error = reader.error
            if error is None:
                self._report("running", "")
            else:
                self._report("retrying", f"{error.sqlstate}: {error.message}")
            due = COPY_INTERVAL if self._behind() else IDLE_WAIT
            self._follower.wait(reader.seen, due, self._ending.is_set)
        return True

    def _snapshot(self, session: Session, encoder: Encoder, at: Progress) -> None:
        """The rows at a time, from where an earlier instance came to; the same rows always come in the same order."""
        events = encoder.events(self._lake.snapshot(self._relation.id, at.time))
        sent = at.snapshot_rows
        crash.point("sink.snapshot")
        while not self._ending.is_set():
            piece = events[sent : sent + SNAPSHOT_PIECE]
            sent += len(piece)
            filled = sent >= len(events)
            marks = consistency.marks(session.settings, at.time, len(events)) if filled and events else []
            self._commit(session, piece, replace(at, snapshot_rows=sent, filled=filled), marks)
            if self._position.filled:
                return

    def _advance(self, session: Session, batch: list[Event], step: Step, marks: list[Mark]) -> None:
        if step.n <= self._position.n:
            return
        reached = replace(self._position, n=step.n, time=step.time)
        if batch:
            self._commit(session, batch, reached, marks)
        else:
            self._position = reached  # nothing to say: Kafka need not know

    def _commit(self, session: Session, events: list[Event], reached: Progress, marks: list[Mark]) -> None:
        session.commit(events, reached, lambda: crash.point("sink.produced"), marks)
        crash.point("sink.committed")
        self._position = reached
        self._report("running", "")

    def _behind(self) -> bool:
        return self._reported is None or self._reported[3] != self._position.n

    def _report(self, status: Status, error: str) -> bool:
        """Writes the copy, if it says something new; where it is, no oftener than COPY_INTERVAL. Returns False if it cannot be written:
        then it keeps more of the log than it has to, and the next report writes it."""
        position, now = self._position, time.monotonic()
        report = (status, error, position.filled, position.n)
        if report == self._reported:
            return True
        if self._reported is not None and report[:3] == self._reported[:3] and now - self._reported_at < COPY_INTERVAL.total_seconds():
            return True
        crash.point("sink.copy")
        try:
            self._copy.write(position.n, position.time, status, error, claimed=self._claimed, filled=position.filled)
        except OSError as failure:  # the position in Kafka counts; the older copy keeps more of the log, not less
            if self._reported is not None:
                _say(f"sink {self.item.name}: its status cannot be written: {failure}")
            self._reported = None
            return False
        self._reported, self._reported_at = report, now
        return True


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
