"""What a tick gives the driver, in one message: every call into the JVM is a round trip, and a tick of twenty views asked sixty times.

    length of the JSON (4 bytes, big-endian) │ JSON │ the relations' changes, an Arrow stream each

The other side: engine/java, TickResult.message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.plan.sharing import Sum


@dataclass(frozen=True, slots=True)
class Ticked:
    """`changes`: of each relation that changed an Arrow stream, or the file that holds a large one; whoever takes that removes it.

    `state`: for the next tick, opaque. `counters`: "<source>.<what>" → number. `forgotten`: nodes without state by now. `due`: when there
    is something to do by the clock, in ms. `sums`: of the operators that ran, by node and partition, the sum of their input, or None if it
    is not known. `lineage`: versions of the state since the last uploaded snapshot.
    """

    changes: tuple[tuple[int, memoryview | Path], ...]
    state: str
    counters: Mapping[str, int]
    forgotten: tuple[int, ...]
    due: int
    sums: Mapping[tuple[int, int], Sum | None]
    lineage: int


def ticked(message: bytes) -> Ticked:
    (length,) = struct.unpack_from(">I", message)
    head = json.loads(message[4 : 4 + length])
    view, at = memoryview(message), 4 + length
    changes: list[tuple[int, memoryview | Path]] = []
    for relation, _, size, file in head["relations"]:
        changes.append((relation, view[at : at + size] if file is None else Path(file)))
        at += size
    sums = {(node, partition): (one, other) if known else None for node, partition, known, one, other in head["sums"]}
    return Ticked(tuple(changes), head["state"], head["counters"], tuple(head["forgotten"]), head["due"], sums, head["lineage"])
