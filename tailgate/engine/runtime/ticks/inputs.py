"""The Kafka readers that feed the ticks. They join and leave between two ticks.

    CREATE SOURCE, RESUME, a stall that ended ──► thread: connect ──boundary──► added to the loop
    DROP, PAUSE, a stall ──boundary──► removed from the loop

A reader begins at the log's offsets, so the log alone determines what each record's tick is. Nothing
else is interrupted when a reader joins or leaves.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka.readers import Reader, java_reader, merged, reader_name
from tailgate.engine.runtime.spark.circuits import Circuits, Opened
from tailgate.engine.runtime.ticks.engine_log import EngineLog
from tailgate.engine.runtime.ticks.failures import caused
from tailgate.engine.runtime.ticks.source_health import SourceHealth
from tailgate.engine.runtime.ticks.tick_loop import Ends, TickLoop
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import ObjectNotInPrerequisiteState, TailgateError
from tailgate.lake.host import crash

log = logging.getLogger("tailgate.engine")

RETRY_S = 2.0  # between two attempts to reach a stalled source


@dataclass(frozen=True, slots=True)
class Connection:
    """A reader in the loop. `identities` looks up the current ids of its topics."""

    reader: Reader
    identities: kafka.Identities


class Inputs:
    """The readers of the tick loop: those that are wanted join, all others leave.

    `circuits` builds the decoders of those with times in columns. `opened` decrypts the settings of registries.
    """

    def __init__(
        self, engine_log: EngineLog, health: SourceHealth, session: SparkSession, vault: Vault, circuits: Circuits, opened: Opened
    ) -> None:
        self._log, self._health, self._session, self._vault = engine_log, health, session, vault
        self._circuits, self._opened = circuits, opened
        self._loop: TickLoop | None = None
        self._connections: dict[str, Connection] = {}
        self._failed: list[tuple[Reader, BaseException]] = []
        self._connecting = threading.Lock()
        self._changed = threading.Event()

    def start(self, loop: TickLoop) -> None:
        """Connects the readers to this loop, in the background."""
        self._loop = loop
        self._log.on_end(self._changed.set)
        self._changed.set()
        threading.Thread(target=self._run, name="inputs", daemon=True).start()

    # ---- changes between two ticks ---------------------------------------------------------------

    def update(self, restart: Collection[str] = ()) -> None:
        """Removes the readers that nothing wants in their present form; the missing ones are connected soon.

        `restart` names readers that continue at the newest entry's offsets. The caller holds the
        boundary.
        """
        readers = {r.name: r for r in self._health.wanted()}
        for name, connection in list(self._connections.items()):
            if name in restart or not _continues(connection.reader, readers.get(name)):
                self._remove(name)
        self._changed.set()

    def restart(self) -> None:
        """Connects all readers again, at the newest entry's offsets, and returns when they are."""
        with self._log.boundary:
            self.update(restart=list(self._connections))
        self._connect()

    def failed(self, name: str, error: BaseException) -> None:
        """Records that the loop has removed a reader because it failed."""
        with self._log.boundary:
            connection = self._connections.pop(name, None)
        if connection is not None:
            self._failed.append((connection.reader, error))
            self._changed.set()

    def _remove(self, name: str) -> None:
        del self._connections[name]
        if self._loop is not None:
            self._loop.remove(name)

    # ---- ticks -----------------------------------------------------------------------------------

    @property
    def readers(self) -> tuple[Reader, ...]:
        """Returns the readers of the next tick. The caller holds the boundary."""
        return tuple(c.reader for c in self._connections.values())

    def reads(self, source: Source) -> bool:
        """Returns whether a reader in the loop reads a source. Any thread may call it."""
        connection = self._connections.get(reader_name(source))
        return connection is not None and source.topic in connection.reader.topics

    def check_topics(self, ends: Ends) -> None:
        """Raises 55000 if a topic that the tick has read was deleted and created again.

        The check comes after the read, so no replacement can go unnoticed. The offsets alone do not
        show it: those of a new topic of the same name may be in the same range.
        """
        for name, connection in self._connections.items():
            before = self._log.newest.offsets.get(name, {})
            read = [t for t in connection.reader.topics if ends.offsets.get(name, before).get(t) != before.get(t)]
            for topic, id in connection.identities.of(read).items() if read else ():
                if (error := kafka.other(topic, id, self._health.topic_id(connection.reader, topic))) is not None:
                    raise ObjectNotInPrerequisiteState(error)

    def blame(self) -> bool:
        """Stalls the readers and topics that cannot be read. Returns whether there were any."""
        with self._log.boundary:
            readers = self.readers
        stalled = [self._health.check(reader) for reader in readers]
        if any(stalled):
            with self._log.boundary:
                self.update()
        return any(stalled)

    # ---- connecting ------------------------------------------------------------------------------

    def _run(self) -> None:
        """Connects readers, and retries stalled ones, until the engine ends."""
        due = time.monotonic()  # when stalled readers are retried
        try:
            while not self._log.stopping:
                self._changed.wait(max(0.0, due - time.monotonic()) if self._health.stalls else None)
                self._changed.clear()
                self._connect()
                if self._health.stalls and time.monotonic() >= due:
                    self._health.retry()
                    self._connect()
                    due = time.monotonic() + RETRY_S
        except Exception as error:  # noqa: BLE001  # `run` raises it
            self._log.end(error)

    def _connect(self) -> None:
        """Connects the wanted readers that are not connected, or stalls them."""
        with self._connecting:
            while self._failed:
                self._examine(*self._failed.pop(0))
            while (reader := self._missing()) is not None:
                try:
                    self._open(reader)
                except (TailgateError, Py4JError) as e:
                    if self._log.stopping:
                        return
                    self._stall(reader, e.message if isinstance(e, TailgateError) else str(e))

    def _stall(self, reader: Reader, error: str) -> None:
        """Stalls a reader that cannot be connected."""
        with self._log.boundary:
            self._health.stall(reader.name, error)
            self.update()

    def _examine(self, reader: Reader, error: BaseException) -> None:
        """Stalls what made a reader fail."""
        if (thrown := caused(error, "tailgate.sources.SourceStalled")) is not None:
            self._health.stall(str(thrown.channel()), str(thrown.getMessage()), lasting=bool(thrown.lasting()))
        else:
            self._health.examine(reader, str(error))
        with self._log.boundary:
            self.update()

    def _missing(self) -> Reader | None:
        """Returns a reader that is wanted and not connected in this form, or None."""
        with self._log.boundary:
            if self._log.stopping:
                return None
            missing = (r for r in self._health.wanted() if r.name not in self._connections or self._connections[r.name].reader != r)
            return next(missing, None)

    def _open(self, reader: Reader) -> None:
        """Connects a reader, unless one of its topics is faulty or it is no longer wanted.

        Raises 08006 if its broker does not answer.
        """
        assert self._loop is not None
        client = self._vault.opened(reader.settings)
        identities = kafka.Identities(reader.brokers, client)
        java = java_reader(self._session, reader, client, self._circuits, self._opened)
        topics = self._health.look(reader)
        crash.point("reader.connected")
        with self._log.boundary:
            if reader not in self._health.wanted():  # it was dropped meanwhile, or a topic is stalled
                self.update()
                return
            offsets = {t: self._health.next_offsets(reader, t, topics[t]) for t in reader.topics}
            self._loop.add(reader.name, java, offsets)
            self._connections[reader.name] = Connection(reader, identities)
            with self._log.committed:
                self._log.newest = self._log.newest.with_offsets(merged(self._log.newest.offsets, {reader.name: offsets}))
        crash.point("reader.added")


def _continues(connected: Reader, target: Reader | None) -> bool:
    """Returns whether a connected reader may read on until the wanted one takes its place."""
    if target is None or not set(connected.topics) <= set(target.topics):
        return False
    return replace(connected, topics=(), times=()) == replace(target, topics=(), times=())
