"""The Kafka readers that sources need: one per set of brokers and options.

The topics of a reader are the channels "<reader>/<topic>". Sources with a transaction topic have
their own reader (`engine.runtime.kafka.transactions`). Readers start from the log's offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tailgate.engine.plan.circuit.decoders import KafkaDecoder
from tailgate.engine.plan.circuit.steps import Steps
from tailgate.engine.plan.sources.envelopes import source_layout, time_column
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.requests import Offsets
from tailgate.engine.runtime.spark.circuits import Circuits, Opened
from tailgate.lake.catalog import Catalog, Source
from tailgate.lake.catalog.formats import Avro
from tailgate.lake.catalog.secrets import Settings, settings
from tailgate.lake.clients import JAVA_SECRET, java


@dataclass(frozen=True, slots=True)
class RecordTime:
    """The column with the times of a source's records: `shape` computes it in milliseconds, from the decoder's results."""

    topic: str
    source: int
    decoder: KafkaDecoder
    shape: Steps


@dataclass(frozen=True, slots=True)
class Reader:
    """One Kafka stream. A reader with a changed secret is a different reader.

    `name` is the prefix of its channels. `topics` is sorted.
    """

    name: str
    brokers: str
    settings: Settings = ()
    topics: tuple[str, ...] = field(default=())
    rate: int | None = None  # limit in records per second
    # configuration of whole transactions, or '' (`engine.runtime.kafka.transactions`)
    transactions: str = ""
    # the times of sources that take them from a column
    times: tuple[RecordTime, ...] = ()
    # access settings of the registries that `transactions` and `times` need
    registries: tuple[Settings, ...] = ()


def reader_name(item: Source) -> str:
    """Returns the name of a source's reader: its channel without the topic."""
    return item.channel.rsplit("/", 1)[0]


def apart(one: Source, other: Source) -> bool:
    """Returns whether two sources need different readers.

    They do if their client settings or transaction topics differ, or if one has a rate limit.
    """
    if transactions.group(one) != transactions.group(other):
        return True
    return one.kafka != other.kafka or one.max_records_per_second is not None or other.max_records_per_second is not None


def beginning(source: Source, bounds: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Returns the offset of the first record of each partition that a source reads."""
    start = source.start or {}
    return {p: min(max(low, start.get(p, low)), high) for p, (low, high) in bounds.items()}


def readers(sources: Iterable[Source], catalog: Catalog) -> tuple[Reader, ...]:
    """Returns the readers that these sources need, by name."""
    sources_by_reader: dict[str, list[Source]] = {}
    for item in sources:
        sources_by_reader.setdefault(reader_name(item), []).append(item)
    return tuple(_reader(name, of, catalog) for name, of in sorted(sources_by_reader.items()))


def _reader(name: str, sources: list[Source], catalog: Catalog) -> Reader:
    """Returns the reader of these sources, which all name it."""
    first = sources[0]
    topics = tuple(sorted({t for s in sources for t in transactions.topics(s)}))
    timed = [s for s in sources if time_column(s)]
    layouts = [(s, source_layout(s)) for s in timed]
    times = tuple(RecordTime(s.topic, s.id, layout.decoder, layout.time) for s, layout in layouts if layout.time is not None)
    accesses = [a for s in sources for a in transactions.accesses(s)] + [
        f.access for s in timed for f in (s.key_format, s.value_format) if isinstance(f, Avro)
    ]
    registries = tuple(settings(a, catalog) for a in accesses)
    reached = settings(first.kafka, catalog)
    configuration = transactions.configuration(sources)
    return Reader(name, first.brokers, reached, topics, first.max_records_per_second, configuration, times, registries)


def freshness_channels(source: Source) -> tuple[str, ...]:
    """Returns the names under which the JVM reports the oldest records of a source.

    The first is that of times in a column, which is missing until the reader knows the column. The other has Kafka's times.
    """
    return (f"{source.channel}#{source.id}", source.channel) if time_column(source) else (source.channel,)


def java_reader(session: SparkSession, reader: Reader, client: Mapping[str, str], circuits: Circuits, opened: Opened) -> Any:
    """Returns the `tailgate.sources.KafkaReader` for this reader.

    `client` are the client settings with secrets decrypted. `opened` decrypts the settings of registries.
    """
    jvm: Any = session._jvm
    java_reader = jvm.tailgate.sources.KafkaReader(reader.name, reader.brokers, list(reader.topics), veiled(session, client))
    if reader.rate is not None:
        java_reader.limit(reader.rate)
    if reader.transactions:
        java_reader.keepTransactions(transactions.with_access(reader.transactions, partial(circuits.access, opened=opened)))
    for time in reader.times:
        decoder = circuits.decoder(time.decoder, opened)
        java_reader.time(time.topic, str(time.source), decoder, circuits.shape(str(decoder.schema().toDDL()), time.shape))
    return java_reader


def veiled(session: SparkSession, access: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of Kafka's Java clients (`lake.clients`), with references for secrets.

    The clients look the secrets up, so that no option, plan or log contains them.
    """
    secrets: Any = session._jvm.tailgate.security.Secrets  # type: ignore[union-attr]  # PySpark declares it as optional
    client_settings = java(access)
    hidden = {name: str(secrets.reference(client_settings[name])) for name in JAVA_SECRET if name in client_settings}
    return {**client_settings, **hidden, **dict(secrets.PROVIDER)} if hidden else client_settings


def merged(old: Mapping[str, Offsets], new: Mapping[str, Offsets]) -> dict[str, Offsets]:
    """Merges offsets by reader and topic; the new ones win.

    A topic that is absent from `new`, because it is stalled, keeps its old offsets.
    """
    return {r: {**old.get(r, {}), **new.get(r, {})} for r in {*old, *new}}
