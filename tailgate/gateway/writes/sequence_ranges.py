"""Values of sequences that this gateway has reserved, and those that a session has got.

    nextval ──► the gateway's range ──empty──► POST /sequence: the next range, twice as long ──► values

Gateways have different ranges. Values that a gateway does not use are gaps, as those of PostgreSQL's CACHE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass, field, replace

from tailgate.gateway.control import Control
from tailgate.lake.catalog import Sequence
from tailgate.lake.control import SequenceRequest

FIRST_RANGE, RANGE_MAX = 32, 1024  # values of the first and of the longest range that is reserved in advance
SEQUENCES_MAX = 10_000  # of which a gateway keeps ranges, and a session its last values


@dataclass(slots=True)
class Range:
    """The reserved values of a sequence that are not used yet.

    `lock`: held while more are reserved. `size`, `end`, `time`: the length, the last value and the time of the last reservation.
    """

    values: range = range(0)
    series: int = 0
    size: int = FIRST_RANGE // 2
    end: int | None = None
    time: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Ranges:
    """The ranges of a gateway, by sequence."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._ranges: dict[int, Range] = {}

    async def take(self, sequence: Sequence, count: int) -> list[int]:
        """Returns the next values. Raises 2200H at the limit of the sequence; the values before it are used up."""
        numbers: list[int] = []
        own = self._range(sequence.id)
        async with own.lock:
            if own.series < sequence.series:  # another gateway has set the sequence
                own.values = range(0)
            while len(numbers) < count:
                if not own.values:
                    own.size = min(2 * own.size, RANGE_MAX)
                    request = max(count - len(numbers), own.size, sequence.cache)
                    answer = await self._control.sequence(SequenceRequest(sequence.id, request))
                    step, own.series = sequence.increment, answer.series
                    own.values = range(answer.first, answer.first + answer.count * step, step)
                    own.end, own.time = own.values[-1], answer.time
                missing = count - len(numbers)
                numbers += own.values[:missing]
                own.values = own.values[missing:]
        return numbers

    async def set(self, sequence: Sequence, value: int, *, called: bool) -> None:
        """Sets the sequence. Raises 22003."""
        own = self._range(sequence.id)
        async with own.lock:
            answer = await self._control.sequence(SequenceRequest(sequence.id, 0, value, called))
            own.values, own.series, own.end, own.time = range(0), answer.series, None, answer.time

    def changed_at(self, sequence: int) -> int:
        """Returns the time of this gateway's last reservation of values, or of its last setval; 0 before the first."""
        return self._ranges[sequence].time if sequence in self._ranges else 0

    def row(self, sequence: Sequence) -> dict[str, int | bool]:
        """Returns the row of a sequence: its last value, without the values that this gateway has reserved last and not used yet."""
        own = self._ranges.get(sequence.id)
        is_newest = own is not None and own.series == sequence.series and own.end == sequence.position
        left = len(own.values) if own is not None and is_newest else 0
        return {"last_value": sequence.position - left * sequence.increment, "log_cnt": left, "is_called": sequence.called}

    def _range(self, id: int) -> Range:
        """Returns the range of a sequence. Forgets the oldest range if there are too many."""
        if id not in self._ranges and len(self._ranges) >= SEQUENCES_MAX:
            oldest = next((i for i, own in self._ranges.items() if not own.lock.locked()), None)
            if oldest is not None:
                del self._ranges[oldest]
        return self._ranges.setdefault(id, Range())


class SequenceValues:
    """The values of a session: the last of each sequence for currval, and the last sequence for lastval.

    It has the positions of the session's temporary sequences, too, by id and the series of their definition.
    """

    def __init__(self) -> None:
        self._values: dict[int, int] = {}
        self.last: int | None = None
        self._moved: dict[tuple[int, int], Sequence] = {}

    def got(self, sequence: int, value: int, *, last: bool = True) -> None:
        """Records a value. `last`: it is that of nextval, which lastval returns."""
        if sequence not in self._values and len(self._values) >= SEQUENCES_MAX:
            del self._values[next(iter(self._values))]
        self._values[sequence] = value
        if last:
            self.last = sequence

    def value(self, sequence: int) -> int | None:
        """Returns the value for currval, or None."""
        return self._values.get(sequence)

    def at_position(self, item: Sequence) -> Sequence:
        """Returns a temporary sequence with its position."""
        moved = self._moved.get((item.id, item.series), item)
        return replace(item, position=moved.position, called=moved.called)

    def move(self, item: Sequence, after: Sequence, temporary: Container[int] | None) -> None:
        """Sets the position of a temporary sequence. Forgets those of sequences that are not in `temporary`, if it is not None."""
        if temporary is not None:
            self._moved = {key: other for key, other in self._moved.items() if key[0] in temporary}
        self._moved[item.id, item.series] = after

    def redefine(self, item: Sequence) -> None:
        """Lets a temporary sequence begin at the position of its new definition."""
        self._moved.pop((item.id, item.series), None)

    def clear(self) -> None:
        """Forgets all values, for DISCARD."""
        self._values.clear()
        self.last = None
