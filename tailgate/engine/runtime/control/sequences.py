"""Reserves values of sequences for gateways, and sets sequences.

    POST /sequence ──► a change of the catalog, as a log entry, durable ──► the values belong to this gateway

The values of a gateway that ends are lost: they are gaps, as those of PostgreSQL's CACHE. The position changes before the answer, so
no value is given twice, whatever ends in between. A request that is sent again reserves other values.
"""

from __future__ import annotations

from typing import Any

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.turns import turn
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.repeated_writes import find_change
from tailgate.lake.catalog import Change, Sequence
from tailgate.lake.control import SequenceRequest
from tailgate.lake.errors import UndefinedTable
from tailgate.sql.sequence_definitions import moved, reserved


class Sequences:
    """Answers `POST /sequence`. Thread safe: it holds the lock of the catalog."""

    def __init__(self, engine: Engine, installation: Installation) -> None:
        self._engine, self._installation = engine, installation

    def __call__(self, body: bytes, client: Client) -> dict[str, Any]:
        """Reserves values or sets the sequence; returns the answer. Raises 42P01, 2200H, 22003."""
        request = SequenceRequest.decode(body)
        if request.value is not None and client.attempt.again and (entries := find_change(self._engine.lake, client.attempt)):
            entry = entries[0]
            return {"first": request.value, "count": 0, "series": _series(entry.catalog), "time": entry.time}
        with turn(self._installation, client):
            item = self._engine.catalog.items.get(request.id)
            if not isinstance(item, Sequence):
                raise UndefinedTable("a sequence that the statement uses was dropped")
            if request.value is None:
                item, first, count = reserved(item, request.count)
            else:
                item, first, count = moved(item, request.value, called=request.called), request.value, 0
            self._engine.change(Change(put=(item,)))
            time = self._engine.newest.time
        return {"first": first, "count": count, "series": item.series, "time": time}


def _series(change: Change | None) -> int:
    """Returns the series that the request's change has begun."""
    assert change is not None
    (item,) = change.put
    assert isinstance(item, Sequence)
    return item.series
