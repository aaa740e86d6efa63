"""State that the log names is missing or damaged: the upserts' is made again, in a folder of its own, before ticks go on.

The rows of keyed relations are in the lake, whatever happened to the state, so those relations stay as they are and readable. The state
of views is not made again here: they are filled (`engine.runtime.installing`).
"""

from __future__ import annotations

from datetime import datetime, timezone

from engine.plan.graph import Graph
from engine.plan.restore import restoring
from engine.runtime.engine import STATE, Engine
from lake import files
from lake.catalog import Catalog
from lake.entry import stream

AFTER = "after-"  # begins the folders of state made again; the number of the newest entry follows
PIECE_ROWS = 20_000  # a tick's worth; all of a relation's rows are in memory once besides
BATCH = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


def restored(engine: Engine, graph: Graph, catalog: Catalog) -> tuple[str, str]:
    """The folder below state/ and the ids of the state made again; the caller names both in the log's next entry. No tick may run."""
    folder = f"{AFTER}{engine.newest.n}"
    path = engine.lake.path / STATE / folder
    files.discard_folder(path)  # of an attempt that did not come to its entry
    part, channels = restoring(graph, catalog)
    circuit = engine.circuits.build(part)
    ids = ""
    for channel, relation in channels.items():
        rows = engine.lake.snapshot(relation, engine.newest.time)
        for at in range(0, rows.num_rows, PIECE_ROWS):
            record = (None, bytearray(stream(rows.slice(at, PIECE_ROWS))), channel, 0, 0, datetime.now(timezone.utc), 0)
            batch = engine.session.createDataFrame([record], BATCH)
            ids = circuit.tick(batch._jdf, str(path), engine.newest.time, ids, engine.parallelism).stateIds()
    return folder, ids


def remove_lost(engine: Engine, folder: str) -> None:
    """Removes all state older than that in the folder, once an entry names it."""
    n = int(folder.removeprefix(AFTER))
    for old in (engine.lake.path / STATE).glob("*"):
        if not old.name.startswith(AFTER) or int(old.name.removeprefix(AFTER)) < n:
            files.discard_folder(old)
