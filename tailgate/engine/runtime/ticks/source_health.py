"""The health of sources: which of them cannot be read at present, and why.

    a reader or topic that fails ──► stalled, alone ──► works again ──► read from the log's offsets

A stall belongs to a reader (its broker does not answer) or to a channel (a topic was deleted, a
record cannot be decoded). Ticks of the other sources continue meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailgate.engine.ddl.kafka.registry import PROBE_SUBJECT, Registry
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.readers import Reader, reader_name, readers
from tailgate.engine.runtime.ticks.engine_log import EngineLog
from tailgate.lake.catalog import Catalog, Source
from tailgate.lake.catalog.formats import Avro
from tailgate.lake.catalog.secrets import Settings, Vault, settings
from tailgate.lake.errors import TailgateError

log = logging.getLogger("tailgate.engine")


@dataclass
class Stall:
    """A reader or source that is not read until the system it needs answers again."""

    error: str
    lasting: bool = False  # stalled until RESUME SOURCE: a retry does not help
    since: float = field(default_factory=time.time)


class SourceHealth:
    """The stalls of the sources that ticks read, by reader and by channel. Thread safe.

    `sources` are the sources that the running circuit reads.
    """

    def __init__(self, engine_log: EngineLog, vault: Vault) -> None:
        self._log, self._vault = engine_log, vault
        self._registry = Registry(vault)
        self.sources: tuple[Source, ...] = ()
        self.stalls: dict[str, Stall] = {}

    # ---- stalls ----------------------------------------------------------------------------------

    def stall(self, name: str, error: str, *, lasting: bool = False) -> None:
        """Stalls a reader or channel, or updates the error of its stall."""
        if name not in self.stalls:
            log.warning("%s is stalled: %s", name, error)
        self.stalls[name] = Stall(error, lasting)

    def resume(self, channels: Iterable[str]) -> None:
        """Ends the stalls of these channels, also those for which a retry alone does not help."""
        for channel in channels:
            self.stalls.pop(channel, None)

    def of(self, source: Source) -> Stall | None:
        """Returns why a source is not read, or None if it is read.

        A source with a transaction topic is also stalled while another topic of its reader is.
        """
        reader = reader_name(source)
        own = self.stalls.get(source.channel) or self.stalls.get(reader)
        if own is not None or transactions.group(source) is None:
            return own
        together = [s for s in self.sources if reader_name(s) == reader and not s.paused]
        stalls = (self.stalls.get(f"{reader}/{t}") for s in together for t in transactions.topics(s))
        return next((s for s in stalls if s is not None), None)

    def wanted(self) -> tuple[Reader, ...]:
        """Returns the readers of the sources that are neither stalled nor paused.

        The caller holds the boundary.
        """
        live = [s for s in self.sources if self.of(s) is None and not s.paused]
        return readers(live, self._log.catalog)

    # ---- topics ----------------------------------------------------------------------------------

    def look(self, reader: Reader) -> dict[str, kafka.Topic]:
        """Returns the topics of a reader and stalls each topic that cannot be read any further.

        Raises 08006 if the broker does not answer.
        """
        topics = kafka.look(reader.brokers, list(reader.topics), self._vault.opened(reader.settings))
        for topic in reader.topics:
            if (error := self._fault(reader, topic, topics.get(topic))) is not None:
                self.stall(f"{reader.name}/{topic}", error)
        return topics

    def next_offsets(self, reader: Reader, topic: str, bounds: kafka.Topic) -> dict[str, int]:
        """Returns the offset at which to read each partition of a topic.

        A partition that the log does not know begins at its first record.
        """
        positions = self._known(reader, topic, bounds)
        return {p: positions.get(p, low) for p, (low, _) in bounds.bounds.items()}

    def topic_id(self, reader: Reader, topic: str) -> str | None:
        """Returns Kafka's id of a topic as recorded when its sources were created, if known.

        Also handles the transaction topic of the reader.
        """
        of = [s for s in self.sources if reader_name(s) == reader.name]
        if topic == transactions.topic(reader.transactions):
            return next((s.transactions.topic_id for s in of if s.transactions is not None), None)
        return next((s.topic_id for s in of if s.topic == topic), None)

    def _known(self, reader: Reader, topic: str, current: kafka.Topic) -> Mapping[str, int]:
        """Returns the log's offsets of a topic.

        For a transaction topic they are moved to the first record that still exists: lost records
        of that topic are not needed.
        """
        positions: Mapping[str, int] = self._log.newest.offsets.get(reader.name, {}).get(topic, {})
        if topic != transactions.topic(reader.transactions):
            return positions
        return {p: max(at, current.bounds.get(p, (0, 0))[0]) for p, at in positions.items()}

    def _fault(self, reader: Reader, topic: str, current: kafka.Topic | None) -> str | None:
        """Returns why the reader cannot continue with a topic, or None if it can."""
        positions = {} if current is None else self._known(reader, topic, current)
        return kafka.fault(topic, current, self.topic_id(reader, topic), positions)

    # ---- failures --------------------------------------------------------------------------------

    def examine(self, reader: Reader, error: str) -> None:
        """Stalls what made a reader fail: some of its topics, or the whole reader."""
        self.check(reader)
        if self.stalls.keys().isdisjoint({reader.name, *(f"{reader.name}/{topic}" for topic in reader.topics)}):
            self.stall(reader.name, error)

    def check(self, reader: Reader) -> bool:
        """Stalls a reader whose broker does not answer, and its faulty topics.

        Returns whether anything is stalled that was not.
        """
        before = set(self.stalls)
        try:
            self.look(reader)
        except TailgateError as e:
            self.stall(reader.name, e.message)
        return set(self.stalls) != before

    def retry(self) -> None:
        """Ends the stalls of the readers and topics that work again."""
        for name, stall in list(self.stalls.items()):
            if not stall.lasting:
                for reader in readers(self.sources, self._log.catalog):
                    if (name == reader.name or name.startswith(reader.name + "/")) and self._works(reader, name, stall):
                        self.stalls.pop(name, None)

    def _works(self, reader: Reader, name: str, stall: Stall) -> bool:
        """Returns whether a reader, or its topic with this channel, can be read again."""
        topic = name[len(reader.name) + 1 :]
        try:
            topics = kafka.look(reader.brokers, list(reader.topics), self._vault.opened(reader.settings))
            if topic and (error := self._fault(reader, topic, topics.get(topic))) is not None:
                stall.error = error
                return False
            of = (s for s in self.sources if reader_name(s) == reader.name and topic in transactions.topics(s))
            for url, access in _registries(of, self._log.catalog):
                self._registry.latest(url, PROBE_SUBJECT, access)
        except TailgateError as e:
            stall.error = e.message
            return False
        return True


def _registries(sources: Iterable[Source], catalog: Catalog) -> set[tuple[str, Settings]]:
    """Returns the URL and access settings of the schema registries that these sources use."""
    formats = [f for s in sources for f in (s.key_format, s.value_format, *transactions.formats(s))]
    return {(f.registry, settings(f.access, catalog)) for f in formats if isinstance(f, Avro) and f.registry}
