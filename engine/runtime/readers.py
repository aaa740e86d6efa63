"""The inputs of the ticks: the inbox first, then one Kafka reader per set of brokers and options, unioned into one stream.

A reader's topics come as channels "<reader>/<topic>". Readers start from the log's offsets, in a checkpoint of their own for
every start of the query: what a batch was is told by the log alone, and Spark's checkpoint holds only what the running query
needs. So a checkpoint may be lost at any time, and readers join and leave at a tick's boundary.

Sources that name a transaction topic have a reader of their own, see `engine.runtime.transactions`.

The inbox must be the first of the union: it is the one that waits for the doorbell, and Kafka's ends are read after it rang.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

from engine.runtime import transactions
from engine.runtime.kafka import Offsets
from lake.catalog import Catalog, Item
from lake.clients import JAVA_SECRET, java
from lake.secrets import Settings, settings

ROWS_PER_TICK = 50_000  # of one reader: 0.5 s of work; a tick that catches up stays short for the others
ANSWER_MS = 3000  # a broker that does not answer stalls its sources, and the others' ticks, no longer than this
RATE = "max_records_per_second"  # option of a source
CLOCK_MS = 10_000  # an idle engine ticks this often, so that time goes on


@dataclass(frozen=True, slots=True)
class Reader:
    """One Kafka stream. `name` begins its channels; `topics` is sorted. With a secret that was altered it is another reader."""

    name: str
    brokers: str
    settings: Settings = ()
    topics: tuple[str, ...] = field(default=())
    rate: int | None = None  # records a second, at most
    transactions: str = ""  # what keeps transactions whole, if something does (`engine.runtime.transactions`)
    registries: tuple[Settings, ...] = ()  # that it asks for that


def reader_name(item: Item) -> str:
    return str(item.options["channel"]).rsplit("/", 1)[0]


def apart(one: Item, other: Item) -> bool:
    """Whether two sources need readers of their own: it is the reader that knows a password, that a limit by the second is of, and that
    keeps transactions whole."""
    if transactions.group(one) != transactions.group(other):
        return True
    return one.options.get("kafka", {}) != other.options.get("kafka", {}) or RATE in one.options or RATE in other.options


def beginning(source: Item, bounds: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """The first record of each partition that a source reads."""
    start = source.options.get("start", {})
    return {p: min(max(low, start.get(p, low)), high) for p, (low, high) in bounds.items()}


def readers(sources: Iterable[Item], catalog: Catalog) -> tuple[Reader, ...]:
    """The readers that these sources need."""
    found: dict[str, list[Item]] = {}
    for item in sources:
        found.setdefault(reader_name(item), []).append(item)
    return tuple(_reader(name, of, catalog) for name, of in sorted(found.items()))


def _reader(name: str, sources: list[Item], catalog: Catalog) -> Reader:
    options = sources[0].options
    topics = tuple(sorted({t for s in sources for t in transactions.topics(s)}))
    registries = tuple(settings(a, catalog) for s in sources for a in transactions.accesses(s))
    reached = settings(options.get("kafka", {}), catalog)
    return Reader(name, options["brokers"], reached, topics, options.get(RATE), transactions.told(sources), registries)


def stream(
    session: SparkSession,
    inbox: Path,
    consumed: int,
    readers: tuple[Reader, ...],
    offsets: Mapping[str, Offsets],
    clients: Mapping[str, Mapping[str, str]],
    keep: Callable[[str], str],
) -> DataFrame:
    """The union. `offsets` of a reader name every partition of its topics; `clients`: how each is to reach its brokers (`veiled`); `keep`
    tells the JVM how registries are reached (`Circuits.access`). One that keeps transactions whole rings by itself."""
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
            .option("kafka.fetch.max.wait.ms", "10")  # else every tick at a low rate takes 500 ms more
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
    return transactions.FORMAT if reader.transactions else "kafka" if reader.rate is None else "tailgate.RatedKafka"


def veiled(session: SparkSession, said: Mapping[str, str]) -> dict[str, str]:
    """What Kafka's Java clients are told (`lake.clients`). Secrets among it stand in no option, plan or log: the clients look them up."""
    secrets: Any = session._jvm.tailgate.security.Secrets  # type: ignore[union-attr]
    told = java(said)
    hidden = {name: str(secrets.reference(told[name])) for name in JAVA_SECRET if name in told}
    return {**told, **hidden, **dict(secrets.PROVIDER)} if hidden else told


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the inputs were at the end of a batch."""

    inbox: int
    offsets: dict[str, Offsets]


def ends(checkpoint: Path, batch: int, readers: tuple[Reader, ...], before: Mapping[str, Offsets]) -> Ends:
    """Read from the file that Spark writes before it runs a batch: a line a source, after the version and the metadata."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
    offsets = {r.name: before[r.name] if line == "-" else json.loads(line) for r, line in zip(readers, lines[1:], strict=True)}
    return Ends(int(json.loads(lines[0])[0]), offsets)
