"""Restores the state of upserts that is missing or damaged, in a new folder, before ticks continue.

The lake has the rows of keyed relations, independently of the state, so they stay readable. State
of views is not restored here: they are filled again (`engine.runtime.backfill.installation`).
"""

from __future__ import annotations

from datetime import datetime, timezone

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views.recovery import recovery_graph
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import stream
from tailgate.lake.log.state_files import STATE
from tailgate.lake.readers import reading

AFTER = "after-"  # prefix of the folders of restored state; the number of the newest entry follows
PIECE_ROWS = 20_000  # per tick; all rows of one relation are in memory as well
BATCH = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


def restored(engine: Engine, graph: Graph, catalog: Catalog) -> tuple[str, str]:
    """Returns the folder below state/ and the ids of the restored state.

    The caller names both in the log's next entry. No tick may run meanwhile.
    """
    folder, name = empty_folder(engine)
    path = engine.lake.local.location(name)
    part, channels = recovery_graph(graph, catalog)
    circuit = engine.circuits.build(part)
    ids = ""
    for channel, relation in channels.items():
        rows = reading.snapshot(engine.lake, relation, engine.newest.time)
        for at in range(0, rows.num_rows, PIECE_ROWS):
            record = (None, bytearray(stream(rows.slice(at, PIECE_ROWS))), channel, 0, 0, datetime.now(timezone.utc), 0)
            batch = engine.session.createDataFrame([record], BATCH)
            ids = circuit.tick(batch._jdf, path, engine.newest.time, ids, engine.parallelism).stateIds()
    return folder, ids


def empty_folder(engine: Engine) -> tuple[str, str]:
    """Returns the folder for new state, below state/, and its name in the store of the machine. It is empty."""
    folder = f"{AFTER}{engine.newest.n}"
    name = f"{STATE}/{folder}"
    engine.lake.local.discard_folder(name)  # left by an attempt that failed before its entry
    return folder, name


def remove_lost(lake: Lake, folder: str) -> None:
    """Removes all state older than that folder. An entry must already name the folder."""
    n = int(folder.removeprefix(AFTER))
    for old in lake.local.names(STATE):
        if not old.startswith(AFTER) or int(old.removeprefix(AFTER)) < n:
            lake.local.discard_folder(f"{STATE}/{old}")
