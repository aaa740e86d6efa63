"""Finds a write or a statement that a gateway sends again, because an earlier engine ended before it answered.

    an entry of the inbox that no tick has read ──► its records have the ids of its writes
    entries of the log, newest first            ──► each has the ids of the writes that its tick has read
    those that change the catalog               ──► each has the id of its statement

The search ends at the entry of the inbox, or of the log, that the gateway has seen before it sent the request first. It
is made for repeated requests only, so it costs nothing else.
"""

from __future__ import annotations

import contextlib

from tailgate.lake.control import Attempt
from tailgate.lake.errors import Gone, SystemError_
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
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
    raise unanswered()


def find_change(lake: Lake, attempt: Attempt) -> list[Header]:
    """Returns the entry of a statement's change of the catalog and all later changes, oldest first; nothing if none is in effect.

    Raises 58000 if the log no longer shows it.
    """
    newest = lake.log.newest()
    assert newest is not None
    n, headers = newest.catalog_version, list[Header]()
    try:
        while n > attempt.after:
            headers.append(lake.log.header(n))
            if undone(attempt.id) in headers[-1].writes:
                return []
            if attempt.id in headers[-1].writes:
                return headers[::-1]
            n = lake.log.header(n - 1).catalog_version
    except Gone:
        raise unanswered() from None
    return []


def undone(id: str) -> str:
    """Returns the id of the entry that undoes a statement whose view could not be filled."""
    return f"{id} undone"


def unanswered() -> SystemError_:
    """Returns the error of a request that may have taken effect."""
    return SystemError_("the engine ended before it answered", hint="Check whether the statement took effect before you send it again.")
