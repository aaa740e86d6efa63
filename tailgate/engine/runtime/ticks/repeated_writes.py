"""Finds a write that a gateway sends again, because an earlier engine ended before it answered.

    an entry of the inbox that no tick has read ──► its records have the ids of its writes
    entries of the log, newest first            ──► each has the ids of the writes that its tick has read

The search ends at the entry of the inbox that the write has seen before it was sent first. It is made
for repeated writes only, so it costs nothing else.
"""

from __future__ import annotations

import contextlib

from tailgate.lake.errors import Gone, SystemError_
from tailgate.lake.folder import Lake
from tailgate.lake.writer.inbox import Inbox

ENTRIES_MAX = 10_000  # of the log: minutes; a gateway sends a write again within seconds


def find(lake: Lake, inbox: Inbox, id: str, base: int) -> int:
    """Returns an entry of the inbox whose tick includes the write with this id, or 0 if no engine accepted it.

    `base`: the last entry of the inbox that the write has seen. Raises 58000 if the log no longer shows it.
    """
    while True:
        newest = lake.log.newest()
        assert newest is not None
        try:
            for number in range(newest.inbox + 1, inbox.newest + 1):
                if any(record.write == id for record in inbox.read(number - 1, number)):
                    return number
            break
        except FileNotFoundError:  # a tick has read the entry meanwhile
            continue
    with contextlib.suppress(Gone):
        for n in range(newest.n, max(newest.n - ENTRIES_MAX, 0), -1):
            header = lake.log.header(n)
            if id in header.writes:
                return header.inbox
            if header.inbox <= base:
                return 0
    raise SystemError_("the engine ended before it answered", hint="Look whether the statement took effect before sending it again.")
