"""The net changes of one time to the events of that time: the same changes always give the same events in the same order.

    DEBEZIUM   rows of one key: old and new are paired into one event {before, after}
               no key known:    an update is two events, {before, null} and {null, after}
    UPSERT     key → new row, or a tombstone (no value) when the key is gone

Copies: a weight of n is n events. Order: by the bytes of the key; without a key all deletions, then all insertions, each by the
bytes of the row. So a reader that applies events one by one never sees more rows than there ever were at a time's two ends.

What pairs old and new is the sink's own KEY, because an event has one message key, or else the key of the relation. UPSERT with a
key that is not unique (NOT ENFORCED) writes all its new rows, in the order of their bytes: the last one stays.

Source: Materialize, interchange/envelopes: befores and afters of one key are zipped at each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, TypeAlias

import pyarrow as pa

from lake.types import WEIGHT, Field
from sinks.avro import NULL, PRESENT, header, rows, stored

Envelope: TypeAlias = Literal["debezium", "upsert"]
Event: TypeAlias = tuple[bytes | None, bytes | None]  # a message's key and value


class Encoder:
    """Changes to events, for one sink. `key`: positions of the message key's columns; `relation_key`: of the relation's own."""

    def __init__(
        self,
        columns: Sequence[Field],
        envelope: Envelope,
        value_id: int,
        *,
        key: Sequence[int] | None = None,
        key_id: int | None = None,
        relation_key: Sequence[int] | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self._envelope = envelope
        self._value = header(value_id)
        self._key = None if key is None or key_id is None else header(key_id)
        self._pairing = key if key is not None else relation_key

    def events(self, changes: pa.Table) -> list[Event]:
        """The events of these rows with their weights; rows that appear more than once are summed first."""
        arrays = stored(changes, self._columns)
        encoded = rows(self._columns, arrays, changes.num_rows)
        net: dict[bytes, int] = {}
        for row, weight in zip(encoded, changes.column(WEIGHT).to_pylist(), strict=True):
            net[row] = net.get(row, 0) + weight
        if self._pairing is None:
            return self._unpaired(net)
        columns = [self._columns[i] for i in self._pairing]
        keys = rows(columns, [arrays[i] for i in self._pairing], changes.num_rows)
        return self._paired(net, dict(zip(encoded, keys, strict=True)))

    def _unpaired(self, net: dict[bytes, int]) -> list[Event]:
        ordered = sorted(net.items())
        before, after = self._value + PRESENT, self._value + NULL + PRESENT
        gone: list[Event] = [(None, before + row + NULL) for row, weight in ordered for _ in range(-weight)]
        come: list[Event] = [(None, after + row) for row, weight in ordered for _ in range(weight)]
        return gone + come

    def _paired(self, net: dict[bytes, int], keys: dict[bytes, bytes]) -> list[Event]:
        sides: defaultdict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
        for row, weight in sorted(net.items()):
            if weight:
                befores, afters = sides[keys[row]]
                (afters if weight > 0 else befores).extend([row] * abs(weight))
        out: list[Event] = []
        for key in sorted(sides):
            befores, afters = sides[key]
            message_key = None if self._key is None else self._key + key
            if self._envelope == "upsert":
                out += [(message_key, self._value + row) for row in afters] or [(message_key, None)]
                continue
            for before, after in zip_longest(befores, afters):
                old = NULL if before is None else PRESENT + before
                new = NULL if after is None else PRESENT + after
                out.append((message_key, self._value + old + new))
        return out
