"""Conversion of the net changes of one time to events. The same changes always give the same events in the same order.

    DEBEZIUM   with a key: the old and new row of a key are paired into one event {before, after}
               without a key: an update is two events, {before, null} and {null, after}
    UPSERT     key → new row, or a tombstone (no value) when the key was deleted, unless its window left because of its retention;
               the tombstones of ksqlDB's tables come first
    NONE       the new row; for append-only relations

A weight of n becomes n events. Events are ordered by the bytes of the key. Without a key all deletions
come first, then all insertions, each ordered by the bytes of the row. A reader that applies events
one by one therefore never has more rows than at the start or the end of the time.

Events of many new rows alone, such as those of a snapshot, are made when they are read (`NewRows`): their
encoded rows take less memory in Arrow than as objects.

Rows are paired by the sink's KEY, because an event has one message key, or else by the relation's
key. UPSERT with a key that is not unique (NOT ENFORCED) writes all new rows of the key in the order of
their bytes; the last one wins.

Source: Materialize, interchange/envelopes: befores and afters of one key are zipped at each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.clients import message_time
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.types import INT8, WEIGHT, Field
from tailgate.sinks.formats.avro import stored
from tailgate.sinks.formats.row_formats import Form
from tailgate.sinks.headers import NO_METADATA, EventMetadata, Headers, headers_of
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS

MICROS_PER_MILLISECOND = 1000
PIECE_ROWS = 10_000  # rows that are encoded at once: their values and bytes are objects meanwhile
NEW_ROWS_MIN = 200  # of the changes of a step: Arrow takes longer for fewer of them, 0.3 ms for one
Envelope: TypeAlias = Literal["debezium", "upsert", "none"]


class Event(NamedTuple):
    """A message for Kafka."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = 0  # in ms; 0: the time at which it is written


class NewRows:
    """The events of rows that are all new, in the order of `Encoder.events`. `rows`, `keys`: as their forms encode them.

    `weights`: how many events each row has. `event` returns the key and the value of a message. `times`, `headers`: by row, if they differ.
    """

    def __init__(
        self,
        event: Callable[[bytes | None, bytes], tuple[bytes | None, bytes | None]],
        rows: pa.Array,
        keys: pa.Array | None,
        weights: np.ndarray,
        times: np.ndarray | None,
        headers: Sequence[Headers] | None,
        constant: Headers,
    ) -> None:
        self._event, self._rows, self._keys, self._times = event, rows, keys, times
        self._headers, self._constant = headers, constant
        sorted_by = {"row": rows} if keys is None else {"key": keys, "row": rows}
        order = pc.sort_indices(pa.table(sorted_by), sort_keys=[(name, "ascending") for name in sorted_by]).to_numpy()
        self._order = np.repeat(order, weights[order])

    def __len__(self) -> int:
        return len(self._order)

    def piece(self, start: int, end: int) -> list[Event]:
        """Returns the events from one position to another."""
        order = self._order[start:end]
        rows: list[bytes] = self._rows.take(pa.array(order)).to_pylist()
        keys: list[bytes | None] = [None] * len(rows) if self._keys is None else self._keys.take(pa.array(order)).to_pylist()
        times = [0] * len(rows) if self._times is None else self._times[order].tolist()
        headers = [self._constant] * len(rows) if self._headers is None else [self._constant + self._headers[n] for n in order.tolist()]
        event = self._event
        return [Event(*event(key, row), *rest) for key, row, *rest in zip(keys, rows, headers, times, strict=True)]


class Encoder:
    """An encoder of changes to events, for one sink.

    `key`: positions of the columns of the message key. `relation_key`: positions of the relation's key.
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
        metadata: EventMetadata = NO_METADATA,
    ) -> None:
        self._columns = tuple(columns)
        self._envelope = envelope
        self._form = form
        self._key_form = key_form or form
        self._key = key
        self._headers, self._constant, self._timestamp, self._joins = metadata.column, metadata.constant, metadata.timestamp, metadata.joins
        self._window_end = next((i for i, column in enumerate(columns) if (column.name, column.type) == (WINDOW_BOUNDS[1], INT8)), None)
        self._of: dict[bytes, Headers] = {}  # headers by row, for the current changes
        self._times: dict[bytes, int] = {}  # times by row, for the current changes
        self._pairing = key if key is not None or envelope == "none" else relation_key

    def events(self, changes: pa.Table, released: int | None = None, single: int | None = None) -> list[Event]:
        """Returns the events of weighted rows. Weights of equal rows are summed first. `released`, `single`: as of Step.

        UPSERT writes a row with the weight 0 again, unless its key has another event.

        Raises 55000 if a row is deleted and the envelope is NONE.
        """
        is_caused = single is not None and self._joins  # then the events of new rows may have another time
        if changes.num_rows >= NEW_ROWS_MIN and not is_caused and pc.min(changes.column(WEIGHT)).as_py() > 0:
            new = self.new_rows(changes)
            return new.piece(0, len(new))
        arrays = stored(changes, self._columns)
        encoded = self._form.rows(self._columns, arrays, changes.num_rows)
        net: dict[bytes, int] = {}
        repeated: set[bytes] = set()
        for row, weight in zip(encoded, changes.column(WEIGHT).to_pylist(), strict=True):
            net[row] = net.get(row, 0) + weight
            if weight == 0 and self._envelope == "upsert":
                repeated.add(row)
        if self._envelope == "none" and any(weight < 0 for weight in net.values()):
            raise ObjectNotInPrerequisiteState("a row went, and ENVELOPE NONE has no words for it", hint="Use ENVELOPE DEBEZIUM or UPSERT.")
        if self._headers is not None:
            self._of = dict(zip(encoded, map(headers_of, arrays[self._headers].to_pylist()), strict=True))
        if self._timestamp is not None:
            self._times = dict(zip(encoded, _message_times(arrays[self._timestamp]), strict=True))
        if self._pairing is None:
            return self._unpaired(net)
        columns = [self._columns[i] for i in self._pairing]
        keys = self._key_form.rows(columns, [arrays[i] for i in self._pairing], changes.num_rows)
        silent: set[bytes] = set()
        if released is not None and self._window_end is not None:
            ends = zip(keys, arrays[self._window_end].to_pylist(), strict=True)
            silent = {key for key, end in ends if end is not None and end <= released}
        caused_at = 0 if single is None or self._timestamp is None or self._window_end is not None else message_time(single)
        key_of = dict(zip(encoded, keys, strict=True))
        changed = {key_of[row] for row, weight in net.items() if weight}
        net |= {row: 1 for row in repeated if key_of[row] not in changed}
        return self._paired(net, key_of, silent, caused_at)

    def new_rows(self, rows: pa.Table) -> NewRows:
        """Returns the events of rows whose weights are positive, which are those of `events`."""
        encoded: list[pa.Array] = []
        keys: list[pa.Array] = []
        times: list[np.ndarray] = []
        headers: list[Headers] = []
        for start in range(0, max(rows.num_rows, 1), PIECE_ROWS):
            piece = rows.slice(start, PIECE_ROWS)
            arrays = stored(piece, self._columns)
            encoded.append(pa.array(self._form.rows(self._columns, arrays, piece.num_rows), pa.large_binary()))
            if self._pairing is not None:
                of_key = [self._columns[i] for i in self._pairing], [arrays[i] for i in self._pairing]
                keys.append(pa.array(self._key_form.rows(*of_key, piece.num_rows), pa.large_binary()))
            if self._timestamp is not None:
                times.append(np.array(_message_times(arrays[self._timestamp]), np.int64))
            if self._headers is not None:
                headers += map(headers_of, arrays[self._headers].to_pylist())
        return NewRows(
            self._of_new_row,
            pa.concat_arrays(encoded),
            None if self._pairing is None else pa.concat_arrays(keys),
            rows.column(WEIGHT).to_numpy(),
            np.concatenate(times) if times else None,
            None if self._headers is None else headers,
            self._constant,
        )

    def _of_new_row(self, key: bytes | None, row: bytes) -> tuple[bytes | None, bytes | None]:
        """Returns the key and the value of the message of a new row."""
        value = self._form.change(None, row) if self._envelope == "debezium" else self._form.value(row)
        return None if key is None or self._key is None else self._key_form.key(key), value

    def _unpaired(self, net: dict[bytes, int]) -> list[Event]:
        ordered = sorted(net.items())
        if self._envelope == "none":
            return [self._event(None, self._form.value(row), row) for row, weight in ordered for _ in range(weight)]
        deletes = [self._event(None, self._form.change(row, None), row) for row, weight in ordered for _ in range(-weight)]
        inserts = [self._event(None, self._form.change(None, row), row) for row, weight in ordered for _ in range(weight)]
        return deletes + inserts

    def _event(self, key: bytes | None, value: bytes | None, row: bytes | None) -> Event:
        """Returns an event with the headers and the time of `row`: the new row, or the deleted one."""
        headers = self._constant if row is None or self._headers is None else self._constant + self._of[row]
        return Event(key, value, headers, 0 if row is None else self._times.get(row, 0))

    def _paired(self, net: dict[bytes, int], keys: dict[bytes, bytes], silent: set[bytes], caused_at: int) -> list[Event]:
        """Returns the events of keys. `silent`: keys whose deletion is not written. `caused_at`: the least time of tombstones and joins."""
        sides: defaultdict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
        for row, weight in sorted(net.items()):
            if weight:
                befores, afters = sides[keys[row]]
                (afters if weight > 0 else befores).extend([row] * abs(weight))
        out: list[Event] = []
        tombstones: list[Event] = out if self._timestamp is None else []
        for key in sorted(sides):
            befores, afters = sides[key]
            message_key = None if self._key is None else self._key_form.key(key)
            if self._envelope == "none":
                out += [self._event(message_key, self._form.value(row), row) for row in afters]
            elif self._envelope == "upsert":
                come = (self._event(message_key, self._form.value(row), row) for row in afters)
                out += (_not_before(event, caused_at) for event in come) if self._joins else come
                if not afters and key not in silent:
                    tombstones.append(_not_before(self._event(message_key, None, befores[-1]), caused_at))
            else:
                pairs = zip_longest(befores, afters)
                out += [
                    self._event(message_key, self._form.change(before, after), before if after is None else after)
                    for before, after in pairs
                ]
        return out if tombstones is out else tombstones + out


def _message_times(array: pa.Array) -> list[int]:
    """Returns the timestamps of messages, from times in µs."""
    micros = array.cast(pa.int64()).to_pylist()
    return [message_time(None if time is None else time // MICROS_PER_MILLISECOND) for time in micros]


def _not_before(event: Event, time: int) -> Event:
    """Returns an event whose timestamp is not before a time."""
    return event if event.timestamp >= time else event._replace(timestamp=time)
