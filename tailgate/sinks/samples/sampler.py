"""The thread of a sink over relations of the schema `tailgate`: once a second it asks a gateway for their rows.

    gateway: rows now ──► minus the rows that the topic has ──► samples/<sink>/<file> ──► one transaction: events, progress with the file
    gateway: rows of the next steps of the history ───────────────────────────────────► one transaction: events, progress with their time

The progress in Kafka names the file with the rows that the topic has. It is durable before the transaction that names it, and is removed
after the second one that follows: a broker that stops may forget the last one, although it has acknowledged it. So after a crash the sink
sends the differences between these rows and the present ones. What changed meanwhile and is the same again is not sent. Rows of the
history are sent once each, in the order of their steps; those that leave after 7 days stay in the topic. A gateway that does not answer,
or an error of the query, is reported, and the next sample is taken as usual.
"""

from __future__ import annotations

import base64
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tailgate.lake import errors, peers
from tailgate.lake.errors import SystemError_, TailgateError
from tailgate.lake.host import crash
from tailgate.lake.readers import holds
from tailgate.lake.tables.weights import formed, negated, total
from tailgate.lake.types import arrow_schema
from tailgate.sinks import consistency
from tailgate.sinks.envelope import Encoder
from tailgate.sinks.progress import Progress
from tailgate.sinks.session import Session
from tailgate.sinks.settings import Settings
from tailgate.sinks.status import samples_folder
from tailgate.sinks.worker import Worker

SAMPLE_S = 1.0  # between two samples
PAUSE_FACTOR = 9  # the pause after a sample is at least this many times its duration
ANSWER_S = 10.0  # longer than a gateway lets the query run


@dataclass(frozen=True, slots=True)
class Sample:
    """The answer of a gateway. `rows`: weighted; all rows at `time`, or if `appended`, those of steps of the history up to `time`.

    `content`: the rows as the gateway has encoded them.
    """

    time: int
    appended: bool
    rows: pa.Table
    content: bytes


class Sampler(Worker):
    """A worker of a sink whose relation is a plain view."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._schema = arrow_schema(self._relation.columns, weight=True)
        self._position = Progress(0, self._begin.time, 0, True, self._instance)
        self._rows = self._schema.empty_table()  # those that the topic has
        self._previous = ""  # the file that the progress before the last one names
        self._unused: list[str] = []  # files that are not needed if no other process has claimed the sink
        self._gateway: peers.Peer | None = None

    @property
    def held(self) -> int:
        return holds.NOTHING

    def end(self, *, dropped: bool = False) -> None:
        super().end(dropped=dropped)
        self._ending.set()  # after the base class has noted a drop, which the thread reads once it ends

    def _continued(self, session: Session, chosen: Settings) -> Progress:
        """Returns the position to continue from. The files of samples that no transaction has committed are removed after the claim."""
        begin = 0 if chosen.snapshot else self._begin.time
        progress = self._recorded(session) or Progress(0, begin, 0, True, self._instance)
        store, folder = self._lake.store, samples_folder(self.item.id)
        self._unused = [f"{folder}/{name}" for name in store.names(folder) if name != progress.rows]
        try:
            content = store.get(f"{folder}/{progress.rows}") if progress.rows else None
        except FileNotFoundError:
            raise self._restored() from None
        self._rows = self._schema.empty_table() if content is None else self._decoded(content)
        return progress

    def _follow(self, session: Session, encoder: Encoder) -> bool:
        """Sends samples until the sink ends. Returns whether another session may follow."""
        self._lake.store.discard(self._unused)
        while not self._ending.is_set():
            began, is_behind = time.monotonic(), False
            try:
                sample = self._sample()
            except TailgateError as error:
                self._failing = True
                self._report("retrying", f"{error.sqlstate}: {error.message}")
            else:
                self._failing = False
                is_behind = self._send(session, encoder, sample)
                self._report("running", "")
            if not is_behind:
                self._ending.wait(max(SAMPLE_S, PAUSE_FACTOR * (time.monotonic() - began)))
        if self._dropped:
            session.commit([], None)
            self._copy.remove()
        return not self._dropped

    def _sample(self) -> Sample:
        """Returns the answer of the gateway that answered last, or else of the first one that answers. Raises its error, or 58000."""
        request = {"do": "sink", "id": self.item.id, "after": self._position.time}
        answer = None if self._gateway is None else peers.ask(self._gateway, request, ANSWER_S)
        for peer in () if answer else peers.announced(self._lake):
            self._gateway, answer = peer, peers.ask(peer, request, ANSWER_S)
            if answer or self._ending.is_set():
                break
        if not answer:
            raise SystemError_("no gateway that knows the sink answers", hint="Start tailgate gateway.")
        if "error" in answer:
            raise errors.of(answer["error"], answer["message"])
        content = base64.b64decode(answer["rows"])
        return Sample(answer["time"], answer["appended"], self._decoded(content), content)

    def _send(self, session: Session, encoder: Encoder, sample: Sample) -> bool:
        """Commits the changes of a sample. Returns whether the history may have more steps."""
        position, before = self._position, self._rows
        if sample.appended:
            if sample.time > position.time:
                self._write(session, encoder, sample.rows, replace(position, n=position.n + 1, time=sample.time, rows=""))
            return sample.time > position.time
        is_first = not position.rows
        changes = total([sample.rows, negated(before)], self._schema)
        if changes.num_rows == 0 and not is_first:
            return False
        folder, file = samples_folder(self.item.id), uuid.uuid4().hex
        self._lake.store.put(f"{folder}/{file}", sample.content)
        crash.point("sink.sampled")
        reached = replace(position, n=position.n + 1, time=max(position.time + 1, sample.time), rows=file)
        is_skipped = is_first and not session.settings.snapshot
        self._write(session, encoder, changes.slice(0, 0) if is_skipped else changes, reached)
        self._rows = sample.rows
        if self._previous:
            self._lake.store.discard([f"{folder}/{self._previous}"])
        self._previous = position.rows
        return False

    def _write(self, session: Session, encoder: Encoder, changes: pa.Table, reached: Progress) -> None:
        events = encoder.events(changes)
        self._commit(session, events, reached, consistency.marks(session.settings, reached.time, len(events)) if events else [])

    def _decoded(self, content: bytes) -> pa.Table:
        """Returns the rows of an answer or of a file, with the columns of the sink."""
        return formed(pa.ipc.open_stream(content).read_all(), self._schema)
