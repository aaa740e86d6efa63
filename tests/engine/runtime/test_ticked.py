"""Decoding of the message that the JVM writes about a tick."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from tailgate.engine.runtime.ticks.tick_result import RELATION, Failure, ticked


def test_the_message_of_a_tick() -> None:
    head = json.dumps(
        {
            "relations": [[16384, 2, 3, None], [16385, 9, 0, "/state/results/a.arrow"], [16386, 1, 2, None]],
            "repeated": [[16384, 4]],
            "state": '{"partitions": 1}',
            "due": 7,
            "counters": {"3.records": 5},
            "forgotten": [4, 6],
            "lineage": 12,
            "sums": [[8, 0, 1, -5, 6], [9, 1, 0, 0, 0]],
            "released": {"16384": 8},
            "failures": [[16384, -1, "division by zero", 2]],
            "took": [["decode", 5], ["level 0", 7]],
        }
    ).encode()
    result = ticked(struct.pack(">I", len(head)) + head + b"abc" + b"de" + b"fghi")
    assert result.changes == ((16384, b"abc"), (16385, Path("/state/results/a.arrow")), (16386, b"de"))
    assert result.repeated == ((16384, b"fghi"),)
    assert (result.state, result.due, result.counters, result.forgotten) == ('{"partitions": 1}', 7, {"3.records": 5}, (4, 6))
    assert (result.lineage, result.released) == (12, {"16384": 8})
    assert result.took == (("decode", 5), ("level 0", 7))
    assert result.failures == (Failure(16384, RELATION, "division by zero", 2),)
    assert result.sums == {(8, 0): (-5, 6), (9, 1): None}
