"""The net changes of one time to the events of that time: the same changes always give the same events in the same order.

    DEBEZIUM   rows of one key: old and new are paired into one event {before, after}
               no key known:    an update is two events, {before, null} and {null, after}
    UPSERT     key → new row, or a tombstone (no value) when the key is gone
    NONE       the new row; of relations whose rows only come

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
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from lake.errors import ObjectNotInPrerequisiteState
from lake.types import WEIGHT, Field
from sinks.avro import stored
from sinks.forms import Form
from sinks.headers import Headers, headers_of

Envelope: TypeAlias = Literal["debezium", "upsert", "none"]


class Event(NamedTuple):
    """A message."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Encoder:
    """Changes to events, for one sink.

    `key`: positions of the message key's columns; `relation_key`: of the relation's own; `headers`: of the column that has a message's
    headers, behind those that are `constant`.
    """

    def __init__(
        self,
        columns: Sequence[Field],
        envelope: Envelope,
        form: Form,
        *,
        key: Sequence[int] | None = None,
        key_form: Form | None = None,
        relation_key: Sequence[int] | None = None,
        headers: int | None = None,
        constant: Headers = (),
    ) -> None:
        self._columns = tuple(columns)
        self._envelope = envelope
        self._form = form
        self._key_form = key_form or form
        self._key = key
        self._headers, self._constant = headers, constant
        self._of: dict[bytes, Headers] = {}  # of the rows of the changes at hand
        self._pairing = key if key is not None or envelope == "none" else relation_key

    def events(self, changes: pa.Table) -> list[Event]:
        """The events of these rows with their weights; rows that appear more than once are summed first.

        Raises 55000 if a row goes and the envelope (NONE) cannot say so.
        """
        arrays = stored(changes, self._columns)
        encoded = self._form.rows(self._columns, arrays, changes.num_rows)
        net: dict[bytes, int] = {}
        for row, weight in zip(encoded, changes.column(WEIGHT).to_pylist(), strict=True):
            net[row] = net.get(row, 0) + weight
        if self._envelope == "none" and any(weight < 0 for weight in net.values()):
            raise ObjectNotInPrerequisiteState("a row went, and ENVELOPE NONE has no words for it", hint="Use ENVELOPE DEBEZIUM or UPSERT.")
        if self._headers is not None:
            self._of = dict(zip(encoded, map(headers_of, arrays[self._headers].to_pylist()), strict=True))
        if self._pairing is None:
            return self._unpaired(net)
        columns = [self._columns[i] for i in self._pairing]
        keys = self._key_form.rows(columns, [arrays[i] for i in self._pairing], changes.num_rows)
        return self._paired(net, dict(zip(encoded, keys, strict=True)))

    def _unpaired(self, net: dict[bytes, int]) -> list[Event]:
        ordered = sorted(net.items())
        if self._envelope == "none":
            return [self._event(None, self._form.value(row), row) for row, weight in ordered for _ in range(weight)]
        gone = [self._event(None, self._form.change(row, None), row) for row, weight in ordered for _ in range(-weight)]
        come = [self._event(None, self._form.change(None, row), row) for row, weight in ordered for _ in range(weight)]
        return gone + come

    def _event(self, key: bytes | None, value: bytes | None, row: bytes | None) -> Event:
        """With the headers of a row: the new one, or the one that goes."""
        return Event(key, value, self._constant if row is None or self._headers is None else self._constant + self._of[row])

    def _paired(self, net: dict[bytes, int], keys: dict[bytes, bytes]) -> list[Event]:
        sides: defaultdict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
        for row, weight in sorted(net.items()):
            if weight:
                befores, afters = sides[keys[row]]
                (afters if weight > 0 else befores).extend([row] * abs(weight))
        out: list[Event] = []
        for key in sorted(sides):
            befores, afters = sides[key]
            message_key = None if self._key is None else self._key_form.key(key)
            if self._envelope == "none":
                out += [self._event(message_key, self._form.value(row), row) for row in afters]
            elif self._envelope == "upsert":
                come = [self._event(message_key, self._form.value(row), row) for row in afters]
                out += come or [self._event(message_key, None, befores[-1])]
            else:
                pairs = zip_longest(befores, afters)
                out += [
                    self._event(message_key, self._form.change(before, after), before if after is None else after)
                    for before, after in pairs
                ]
        return out
