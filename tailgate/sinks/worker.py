"""The thread of one sink, from its registration to its drop. It retries until it is stopped.

    session ──► claim ──► snapshot, in parts ──► steps, in batches ──► wait for the log ─┐
       ▲                                             ▲                                   │
       │ pause                                       └───────────────────────────────────┘
       └── broker or registry absent, disk full: `retrying`        replaced, refused, log removed: `stopped`

The sink's position is in Kafka, in the same transaction as the events. A copy in the lake holds the
log and is shown by SHOW SINKS. The copy is ahead of Kafka only by entries in which the relation did
not change.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tailgate.formats import registry
from tailgate.formats.events.schemas import Part, schema
from tailgate.formats.ksqldb import serde as serdes
from tailgate.formats.ksqldb.serde import Serde
from tailgate.lake.catalog import Item, Sink
from tailgate.lake.catalog.secrets import without_secrets
from tailgate.lake.errors import ConfigurationLimitExceeded, Gone, IoError, ObjectNotInPrerequisiteState, TailgateError, from_system
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers import reading
from tailgate.lake.tables.weights import formed
from tailgate.lake.types import Field, arrow_schema
from tailgate.sinks import consistency
from tailgate.sinks.consistency import Mark
from tailgate.sinks.envelope import Encoder, Event
from tailgate.sinks.failures import Fenced, Replaced
from tailgate.sinks.follower import Follower
from tailgate.sinks.formats import ksqldb, protobuf, row_formats
from tailgate.sinks.formats.row_formats import Form
from tailgate.sinks.headers import EventMetadata
from tailgate.sinks.progress import Progress, topic
from tailgate.sinks.reading import Reader, Step
from tailgate.sinks.session import Session
from tailgate.sinks.settings import Opened, Settings, settings
from tailgate.sinks.status import Copy, Figures, Position, Status
from tailgate.sql.ksqldb.queries.scopes import value_positions

log = logging.getLogger("tailgate.sinks")

SNAPSHOT_PIECE = 10_000  # events of a snapshot per transaction: 0.1 s of work to repeat after a crash
BATCH_EVENTS = 10_000  # a batch of steps is committed at this size; a step is never divided

RETRY_FIRST = timedelta(seconds=0.25)  # delays between sessions double, from the first to the last
RETRY_LAST = timedelta(seconds=5)

COPY_INTERVAL = timedelta(seconds=1)  # writing the copy takes 1 ms, and a busy log has six ticks a second
IDLE_WAIT = timedelta(seconds=60)  # an idle worker wakes at this interval


@dataclass(frozen=True, slots=True)
class Begin:
    """The entry at which the sink was created, and its time."""

    n: int
    time: int


class Worker(threading.Thread):
    """A thread that runs one sink until `end()`, until the sink is dropped, or until an error that a retry cannot fix."""

    def __init__(
        self, lake: Lake, item: Sink, relation: Item, begin: Begin, follower: Follower, instance: str, opened: Opened = without_secrets
    ) -> None:
        super().__init__(name=f"sink {item.name}", daemon=True)
        self.item = item
        self._opened = opened
        self._lake = lake
        self._relation = replace(relation, columns=relation.columns[: item.known_columns.get(relation.id)])
        self._begin = begin
        self._follower = follower
        self._instance = instance
        self.events, self.retries = 0, 0  # since the start of the process
        self._last_event: int | None = None  # when the newest event was written, in ms
        self._ending = threading.Event()
        self._dropped = False
        self._encoder: Encoder | None = None
        self._pause = RETRY_FIRST
        self._copy = Copy(lake, item.id)
        copy = self._copy.position()
        n, reached = (begin.n, begin.time) if copy is None else (copy.n, copy.time)
        self._position = Progress(n, reached, 0, copy is not None and copy.filled, instance)
        self._claimed = copy is not None and copy.claimed  # whether Kafka has a progress record of this sink
        self._sent = 0 if copy is None else copy.sent  # the last entry with events that Kafka has acknowledged
        self._failing = False  # whether writing fails at present
        self._reported: tuple[Status, str, bool, int] | None = None
        self._reported_at = 0.0

    def end(self, *, dropped: bool = False) -> None:
        """Ends the worker after its current transaction.

        If the sink was dropped, the worker first writes the changes before the drop, unless writing fails.
        """
        self._dropped = self._dropped or dropped
        if not dropped or self._failing:
            self._ending.set()
        self._follower.wake()

    @property
    def up(self) -> bool:
        """Returns whether the sink writes: it neither retries nor has stopped."""
        return self.is_alive() and not self._failing

    @property
    def position(self) -> Progress:
        """Returns the entry up to which the log is processed."""
        return self._position

    @property
    def held(self) -> int:
        """Returns the entry after which the sink needs the log."""
        return self._position.n

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
            log.warning("sink %s: %s", self.item.name, error.message)  # the copy now belongs to the other process
        except TailgateError as error:
            self._stopped(f"{error.sqlstate}: {error.message}")
        except Exception as error:  # a defect ends only this sink, and is reported
            log.exception("sink %s has stopped because of a defect", self.item.name)
            self._stopped(f"XX000: {error}")

    def _stopped(self, error: str) -> None:
        """Reports that the sink has stopped, and repeats this while the file system fails."""
        self._failing = True
        while not self._report("stopped", error) and not self._ending.wait(RETRY_LAST.total_seconds()):
            pass
        if self._dropped:
            self._copy.remove()

    def _life(self) -> bool:
        """Runs one session until it fails or ends. Returns whether another session may follow."""
        chosen = settings(self.item, self._opened)
        session: Session | None = None
        try:
            encoder = self._encoder = self._encoder or self._registered(chosen)
            session = Session(chosen, self._lake.id, self.item.id, self._ending.is_set)
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
        except OSError as error:  # from the lake's file system, for example a full disk
            self._retry(from_system(error) or IoError(str(error)))
        finally:
            if session is not None:
                session.close()
        return True

    def _retry(self, error: TailgateError) -> None:
        self._failing = True
        self.retries += 1
        if self._dropped:
            self._ending.set()
        self._report("retrying", f"{error.sqlstate}: {error.message}")
        self._ending.wait(self._pause.total_seconds())
        self._pause = min(2 * self._pause, RETRY_LAST)

    def _registered(self, chosen: Settings) -> Encoder:
        """Returns the encoder, after registering the schemas of the formats that need one."""
        columns = self._relation.columns
        is_stream = chosen.value_format == "ksqldb" and chosen.envelope == "none"

        def register(part: str, of: registry.Schema) -> int:
            subject = f"{chosen.topic}-{part}"
            if part in chosen.compatibility:
                registry.compatibility(chosen.registry, chosen.registry_access, subject, chosen.compatibility[part])
            return registry.register(chosen.registry, chosen.registry_access, subject, of)

        def of_ksqldb(part: Part, columns: Sequence[Field], serde: Serde) -> Form:
            types = ksqldb.types_of(self._relation)
            if part == "key":
                record = ksqldb.key_columns(columns)
            else:
                record = [columns[i] for i in value_positions(columns, chosen.key)]
            of_registry = serdes.schema(serde, ksqldb.named(record, types))
            id = None if of_registry is None else register(part, of_registry)
            if part == "key":
                return ksqldb.KsqldbKey(serde, types, id, is_new=ksqldb.has_new_key(self._relation))
            return ksqldb.KsqldbValue(serde, chosen.key, types, is_stream=is_stream, schema_id=id)

        def form(kind: str, part: Part, columns: Sequence[Field], name: str) -> Form:
            if kind == "json":
                return row_formats.Json()
            if kind == "ksqldb":
                serde = chosen.key_serde if part == "key" else chosen.value_serde
                assert serde is not None
                return of_ksqldb(part, columns, serde)
            if kind == "text":
                return row_formats.Text()
            id = register(part, schema(kind, part, columns, chosen.envelope, name))
            return protobuf.Protobuf(id) if kind == "protobuf" else row_formats.Avro(id, id)

        timestamp = ksqldb.timestamp(columns) if chosen.value_format == "ksqldb" else None
        key_form = None
        if chosen.key is not None:
            key_form = form(chosen.key_format, "key", [columns[i] for i in chosen.key], chosen.key_name)
        value_form = form(chosen.value_format, "value", columns, chosen.value_name)
        return Encoder(
            columns,
            chosen.envelope,
            value_form,
            key=chosen.key,
            key_form=key_form,
            relation_key=self._relation.key,
            metadata=EventMetadata(chosen.headers, chosen.constant_headers, timestamp, ksqldb.joins(self._relation)),
        )

    def _claim(self, session: Session, chosen: Settings) -> None:
        """Claims the sink with a first transaction, at the position to continue from."""
        self._position = replace(self._continued(session, chosen), instance=self._instance)
        session.commit([], self._position)
        crash.point("sink.claimed")
        self._claimed = True
        self._failing = False
        self._report("running", "")
        self._pause = RETRY_FIRST

    def _continued(self, session: Session, chosen: Settings) -> Progress:
        """Returns the position to continue from. Raises 53400 or 55000 if there is none."""
        copy = self._copy.position()
        if (reason := self._copy.stopped()) is not None:
            held = f"the log is no longer kept for sink {self.item.name}: {reason}"
            raise ConfigurationLimitExceeded(held, hint="Drop the sink and create it again.")
        progress = self._recorded(session) or Progress(self._begin.n, self._begin.time, 0, not chosen.snapshot, self._instance)
        sent = progress.n
        # A broker that stops may forget a transaction that it has acknowledged: then the copy has events that Kafka has not.
        if session.progress is not None and progress.filled and copy is not None and copy.n > progress.n >= copy.sent:
            progress = replace(progress, n=copy.n, time=copy.time)
        self._check_history(progress)
        self._sent = sent
        return progress

    def _recorded(self, session: Session) -> Progress | None:
        """Returns the progress that Kafka has, None for a new sink. Raises 55000 if Kafka has lost it."""
        if session.progress is None and self._claimed:
            raise ObjectNotInPrerequisiteState(
                f"Kafka has lost the progress of sink {self.item.name}",
                detail=f"The topic {topic(self._lake.id)} has no record of it.",
                hint="Drop the sink and create it again.",
            )
        return session.progress

    def _check_history(self, progress: Progress) -> None:
        """Raises 55000 if the log does not have the entry that the sink has reached: the lake was restored from an older backup."""
        newest = self._lake.log.look()
        with contextlib.suppress(Gone):  # the reader of the entries reports that they are gone
            if newest is None or progress.n > newest.n or self._lake.log.header(progress.n).time != progress.time:
                raise self._restored()

    def _restored(self) -> TailgateError:
        return ObjectNotInPrerequisiteState(
            f"sink {self.item.name} has written changes that the lake does not have",
            detail="The lake was restored from a backup that is older than the last transaction in Kafka.",
            hint="Drop the sink and create it again with another topic.",
        )

    def _follow(self, session: Session, encoder: Encoder) -> bool:
        """Writes the snapshot and then the steps of the log. Returns whether another session may follow."""
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
                if not self._position.filled:  # the view had errors when the sink was created
                    self._snapshot(session, encoder, replace(self._position, n=step.n, time=step.time))
                    continue
                if step.changes is not None:
                    events = encoder.events(step.changes, step.released, step.single)
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
        """Writes the rows at a time, continuing after those that an earlier instance wrote. Their order is always the same.

        Columns that the relation got later are NULL.
        """
        schema = arrow_schema(self._relation.columns, weight=True)
        events = encoder.new_rows(formed(reading.snapshot(self._lake, self._relation.id, at.time), schema))
        sent = at.snapshot_rows
        crash.point("sink.snapshot")
        while not self._ending.is_set():
            piece = events.piece(sent, sent + SNAPSHOT_PIECE)
            sent += len(piece)
            filled = sent >= len(events)
            marks = consistency.marks(session.settings, at.time, len(events)) if filled and events else []
            self._commit(session, piece, replace(at, snapshot_rows=sent, filled=filled), marks)
            if self._position.filled:
                return

    def _advance(self, session: Session, batch: list[Event], step: Step, marks: list[Mark]) -> None:
        """Moves the position to a step, and commits the batch if it has events."""
        if step.n <= self._position.n:
            return
        reached = replace(self._position, n=step.n, time=step.time)
        if batch:
            self._commit(session, batch, reached, marks)
        else:
            self._position = reached  # without events Kafka need not know the position

    def _commit(self, session: Session, events: list[Event], reached: Progress, marks: list[Mark]) -> None:
        session.commit(events, reached, lambda: crash.point("sink.produced"), marks)
        self.events += len(events)
        self._last_event = time.time_ns() // 1_000_000 if events else self._last_event
        crash.point("sink.committed")
        self._position, self._sent = reached, reached.n
        self._report("running", "")

    def _behind(self) -> bool:
        return self._reported is None or self._reported[3] != self._position.n

    def _report(self, status: Status, error: str) -> bool:
        """Writes the copy if its content has changed, but a changed position at most once per COPY_INTERVAL.

        Returns False if writing fails. The old copy then holds more of the log than necessary, until the
        next report succeeds.
        """
        position, now = self._position, time.monotonic()
        report = (status, error, position.filled, position.n)
        if report == self._reported:
            return True
        if self._reported is not None and report[:3] == self._reported[:3] and now - self._reported_at < COPY_INTERVAL.total_seconds():
            return True
        crash.point("sink.copy")
        try:
            figures = Figures(self.events, self._last_event)
            self._copy.write(Position(self.held, position.time, self._claimed, position.filled, self._sent), status, error, figures)
        except OSError as failure:  # the position in Kafka is decisive; the older copy holds more of the log, not less
            if self._reported is not None:
                log.warning("the status of sink %s cannot be written: %s", self.item.name, failure)
            self._reported = None
            return False
        self._reported, self._reported_at = report, now
        return True
