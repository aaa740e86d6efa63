"""A process whose JVM has a small heap: a large Debezium table is truncated or snapshotted again.

    python -m tests.engine.ddl.clearing FOLDER ROWS BYTES {truncate | snapshot} {key | bag}

Prints the number of deleted rows and of inserted rows. TAILGATE_JAVA_OPTIONS sets the heap size.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailgate.engine.plan.views import catalog_graph
from tailgate.engine.plan.views.recovery import recovery_graph
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.lake.log.entry import stream
from tailgate.lake.types import WEIGHT, arrow_schema
from testing.change_data import Source

PIECE_BYTES = 8 << 20
# rows of Python and not of Arrow (`testing.records`), which would be in the heap as a whole
KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
COLUMNS = "(id int NOT NULL, t text{})"
SOURCE = {"connector": "postgresql", "name": "shop", "schema": "public", "table": "items", "lsn": 5000, "ts_ms": 2_000_000_000_000}
EVENTS = {
    "truncate": {"op": "t", "before": None, "after": None, "source": SOURCE},
    "snapshot": {"op": "r", "before": None, "after": {"id": 1, "t": "new"}, "source": {**SOURCE, "snapshot": "first"}},
}


def main(folder: Path, rows: int, size: int, event: str, kind: str) -> None:
    from tailgate.engine.runtime.spark import session

    spark = session.start(folder / "spark", 1)
    keyed = kind == "key"
    columns = COLUMNS.format(", PRIMARY KEY (id) NOT ENFORCED" if keyed else "")
    text = f"CREATE SOURCE s {columns} FROM KAFKA BROKER 'kafka:9092' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM"
    source = Source(spark, folder / "state", text)
    filled(spark, source, rows, size)
    record = (
        None,
        bytearray(json.dumps(EVENTS[event]).encode()),
        source.item.channel,
        0,
        0,
        datetime.now(timezone.utc),
        0,
        None,
    )
    result = tick(spark, source, source.circuit, [record])
    went = came = 0
    (place,) = (i for i, relation in enumerate(result.relations()) if relation == source.item.id)
    data: Any = pa.memory_map(result.file(place)) if result.file(place) else bytes(result.changes(place))
    for batch in pa.ipc.open_stream(data):
        weights = batch.column(batch.num_columns - 1).to_pylist()
        went += -sum(w for w in weights if w < 0)
        came += sum(w for w in weights if w > 0)
    print(went, came)


def filled(spark: Any, source: Source, rows: int, size: int) -> None:
    """Restores state as if all rows had been sent."""
    part, channels = recovery_graph(catalog_graph.compile_catalog(source.catalog, Streams(source.catalog)), source.catalog)
    again = Circuits(spark).build(part)
    ((channel, _),) = ((c, r) for c, r in channels.items() if r == source.item.id)
    schema = arrow_schema(source.item.columns, weight=True)
    piece = max(1, PIECE_BYTES // size)
    for begin in range(0, rows, piece):
        ids = list(range(begin, min(begin + piece, rows)))
        table = pa.table({"id": ids, "t": [f"{i:0{size}}" for i in ids], WEIGHT: [1] * len(ids)}, schema=schema)
        tick(spark, source, again, [(None, bytearray(stream(table)), channel, 0, 0, datetime.now(timezone.utc), 0, None)])


def tick(spark: Any, source: Source, of: Any, records: list[Any]) -> Any:
    frame = spark.createDataFrame(records, KAFKA).coalesce(1)
    source.ticks += 1
    result = of.tick(frame._jdf, str(source.state), source.ticks, source.ids, 1)
    source.ids = result.stateIds()
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
