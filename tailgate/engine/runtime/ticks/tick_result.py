"""The result of a tick, sent to the driver in one message.

Every call into the JVM is a round trip, and a tick of twenty views would need sixty.

    length of the JSON (4 bytes, big-endian) │ JSON │ the relations' changes, an Arrow stream each

TickResult.message in tailgate/engine/java writes the message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailgate.engine.plan.views.sharing import Sum

# `port` of a failure that is not in the edge to an operator
RELATION, VALUE, KEY = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that failed with the same message.

    `node`: the operator or, with `port` RELATION, the relation whose edge failed and continued with NULL. With VALUE or KEY, the source
    whose records could not be decoded.
    """

    node: int
    port: int
    message: str
    rows: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """The result of a tick.

    `changes`: by relation, an Arrow stream, or a file with a large one, which the receiver removes. `repeated`: see Header.
    `state`: opaque value for the next tick. `counters`: "<source>.<what>" → number. `forgotten`:
    nodes whose state has been removed. `due`: time in ms at which a tick is needed next. `sums`: by
    operator and partition, the sum of its input, or None if unknown. `lineage`: versions of the
    state since the last uploaded snapshot. `sizes`: rows and bytes of the changes, by relation. `released`: see Header.
    `took`: the steps of the tick in the JVM with their nanoseconds: decode, level 0, …, state.
    """

    changes: tuple[tuple[int, memoryview | Path], ...]
    repeated: tuple[tuple[int, memoryview], ...]
    state: str
    counters: Mapping[str, int]
    forgotten: tuple[int, ...]
    due: int
    sums: Mapping[tuple[int, int], Sum | None]
    lineage: int
    sizes: Mapping[int, tuple[int, int]]
    released: Mapping[str, int]
    failures: tuple[Failure, ...]
    took: tuple[tuple[str, int], ...]


def ticked(message: bytes | bytearray) -> Ticked:
    """Parses the message of a tick."""
    (length,) = struct.unpack_from(">I", message)
    head = json.loads(message[4 : 4 + length])
    view, at = memoryview(message), 4 + length
    changes: list[tuple[int, memoryview | Path]] = []
    sizes = {relation: (rows, size) for relation, rows, size, _ in head["relations"]}
    for relation, _, size, file in head["relations"]:
        changes.append((relation, view[at : at + size] if file is None else Path(file)))
        at += size
    repeated: list[tuple[int, memoryview]] = []
    for relation, size in head["repeated"]:
        repeated.append((relation, view[at : at + size]))
        at += size
    sums = {(node, partition): (one, other) if is_known else None for node, partition, is_known, one, other in head["sums"]}
    figures = head["due"], sums, head["lineage"], sizes, head["released"], tuple(Failure(*failure) for failure in head["failures"])
    took = tuple((step, nanoseconds) for step, nanoseconds in head["took"])
    return Ticked(tuple(changes), tuple(repeated), head["state"], head["counters"], tuple(head["forgotten"]), *figures, took)
