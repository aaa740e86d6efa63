"""The inputs of the ticks: the union of the inbox and the Kafka readers, as one stream.

There is one Kafka reader per set of brokers and options. Its topics are the channels
"<reader>/<topic>". Sources with a transaction topic have their own reader
(`engine.runtime.transactions`).

Readers start from the log's offsets, with a new checkpoint for each start of the query. The log
alone identifies batches; Spark's checkpoint only serves the running query. A checkpoint may
therefore be lost at any time, and readers can join and leave at the boundary of a tick.

The inbox must come first in the union: it waits for the doorbell, and the ends of Kafka's topics
are read after the doorbell has rung.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

from tailgate.engine.runtime import transactions
from tailgate.engine.runtime.kafka import Offsets
from tailgate.lake.catalog import Catalog, Source
from tailgate.lake.catalog.secrets import Settings, settings
from tailgate.lake.clients import JAVA_SECRET, java

# limit per reader: 0.5 s of work, so that a tick of a source that catches up delays others little
ROWS_PER_TICK = 50_000
# longest wait for a broker; its sources are then stalled, and ticks of the others continue
ANSWER_MS = 3000
CLOCK_MS = 10_000  # interval of ticks of an idle engine, so that time advances


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
    # configuration of whole transactions, or '' (`engine.runtime.transactions`)
    transactions: str = ""
    # access settings of the registries that `transactions` needs
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
    found: dict[str, list[Source]] = {}
    for item in sources:
        found.setdefault(reader_name(item), []).append(item)
    return tuple(_reader(name, of, catalog) for name, of in sorted(found.items()))


def _reader(name: str, sources: list[Source], catalog: Catalog) -> Reader:
    """Returns the reader of these sources, which all name it."""
    first = sources[0]
    topics = tuple(sorted({t for s in sources for t in transactions.topics(s)}))
    registries = tuple(settings(a, catalog) for s in sources for a in transactions.accesses(s))
    reached = settings(first.kafka, catalog)
    return Reader(name, first.brokers, reached, topics, first.max_records_per_second, transactions.told(sources), registries)


def stream(
    session: SparkSession,
    inbox: Path,
    consumed: int,
    readers: tuple[Reader, ...],
    offsets: Mapping[str, Offsets],
    clients: Mapping[str, Mapping[str, str]],
    keep: Callable[[str], str],
) -> DataFrame:
    """Returns the union of the inputs.

    `offsets`: by reader, the start offset of every partition of its topics. `clients`: the client
    settings of each reader (`veiled`). `keep` stores access settings of registries in the JVM
    (`Circuits.access`). The doorbell does not watch readers with transactions: they ring it
    themselves.
    """
    watched = [{"bootstrap": r.brokers, "topics": list(r.topics), "options": dict(clients[r.name])} for r in readers if not r.transactions]
    source = (
        session.readStream.format("tailgate-inbox").option("path", str(inbox)).option("start", str(consumed)).option("clock", str(CLOCK_MS))
    )
    union = source.option("watch", json.dumps(watched)).load()
    for reader in readers:
        kafka = (
            session.readStream.format(_format(reader))
            .option("kafka.bootstrap.servers", reader.brokers)
            .option("subscribe", ",".join(reader.topics))
            .option("startingOffsets", json.dumps({t: offsets[reader.name][t] for t in reader.topics}))
            .option("maxOffsetsPerTrigger", str(ROWS_PER_TICK))
            .option("failOnDataLoss", "true")
            .option("includeHeaders", "true")
            .option("fetchOffset.numRetries", "1")
            .option("kafka.isolation.level", "read_committed")
            # the default makes every tick at a low rate 500 ms longer
            .option("kafka.fetch.max.wait.ms", "10")
            .option("kafka.default.api.timeout.ms", str(ANSWER_MS))
            .option("kafka.request.timeout.ms", str(ANSWER_MS))
        )
        if reader.rate is not None:
            kafka = kafka.option("rate", str(reader.rate)).option("inbox", str(inbox))
        if reader.transactions:
            said = transactions.unveiled(reader.transactions, keep)
            kafka = kafka.option("transactions", said).option("reader", reader.name).option("inbox", str(inbox))
        for name, value in clients[reader.name].items():
            kafka = kafka.option(f"kafka.{name}", value)
        union = union.union(kafka.load().withColumn("topic", functions.concat(functions.lit(reader.name + "/"), functions.col("topic"))))
    return union


def _format(reader: Reader) -> str:
    """Returns the name of the Spark source that this reader needs."""
    return transactions.FORMAT if reader.transactions else "kafka" if reader.rate is None else "tailgate.sources.RatedKafka"


def veiled(session: SparkSession, said: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of Kafka's Java clients (`lake.clients`), with references for secrets.

    The clients look the secrets up, so that no option, plan or log contains them.
    """
    secrets: Any = session._jvm.tailgate.security.Secrets  # type: ignore[union-attr]
    told = java(said)
    hidden = {name: str(secrets.reference(told[name])) for name in JAVA_SECRET if name in told}
    return {**told, **hidden, **dict(secrets.PROVIDER)} if hidden else told


@dataclass(frozen=True, slots=True)
class Ends:
    """The positions of the inputs at the end of a batch."""

    inbox: int
    offsets: dict[str, Offsets]


def ends(checkpoint: Path, batch: int, readers: tuple[Reader, ...], before: Mapping[str, Offsets]) -> Ends:
    """Reads the ends of a batch from the file that Spark writes before it runs the batch.

    The file has one line per input, after two lines of version and metadata.
    """
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
    offsets = {r.name: before[r.name] if line == "-" else json.loads(line) for r, line in zip(readers, lines[1:], strict=True)}
    return Ends(int(json.loads(lines[0])[0]), offsets)
