"""Segments: many older entries in one file, so that an hour of ticks is a few dozen files instead of twenty thousand.

    segments/<first>-<last>     one line of JSON (first, last, offset of each entry), then the unchanged entries

A segment is complete before its name exists, and its entries are removed from log/ later. So a reader
that does not find an entry in log/ finds it here. Sections in separate objects stay in log/.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailgate.lake.log.entry import ALIGNMENT, first_line
from tailgate.lake.store import FencedWriter, Store

FOLDER = "segments"
ENTRIES = 1_000  # per segment: three minutes of ticks, and an index of some 15 KB

_NAME = re.compile(r"([0-9]+)-([0-9]+)$")


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A segment by its first and last entry."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """Returns its name in the store."""
        return f"{FOLDER}/{self.first}-{self.last}"

    def has(self, n: int) -> bool:
        return self.first <= n <= self.last


def range_of(name: str) -> Range | None:
    """Returns the segment with a name in its folder; None for other names."""
    match = _NAME.match(name)
    return None if match is None else Range(int(match[1]), int(match[2]))


class Segments:
    """The segments of one log. The last one that was read stays in memory, or mapped into it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: tuple[Range, list[int], pa.Buffer] | None = None
        self._reading = threading.Lock()  # many threads that need the same segment read it once

    def ranges(self) -> list[Range]:
        """Returns all segments, oldest first."""
        return sorted(filter(None, map(range_of, self._store.names(FOLDER))))

    def find(self, n: int) -> pa.Buffer | None:
        """Returns the bytes of entry n, including its header; None if no segment has it."""
        opened = self._open
        if opened is None or not opened[0].has(n):
            with self._reading:
                opened = self._open
                if opened is None or not opened[0].has(n):
                    segment = next((r for r in self.ranges() if r.has(n)), None)
                    if segment is None:
                        return None
                    opened = self._open = self._read(segment)
        segment, starts, raw = opened
        i = n - segment.first
        return raw.slice(starts[i], starts[i + 1] - starts[i])

    def _read(self, segment: Range) -> tuple[Range, list[int], pa.Buffer]:
        raw = self._store.get(segment.name)
        line = first_line(raw)
        return segment, json.loads(line)["starts"], raw.slice(len(line))

    def roll(self, first: int, names: Sequence[str], writer: FencedWriter) -> Range:
        """Writes the segment of entries `first`, first+1, … from their objects. May be repeated."""
        segment = Range(first, first + len(names) - 1)
        starts = [0]
        for name in names:
            size = self._store.size(name)
            starts.append(starts[-1] + size + -size % ALIGNMENT)
        line = json.dumps({"first": segment.first, "last": segment.last, "starts": starts}, separators=(",", ":")).encode()
        line += b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"

        def parts() -> Iterator[bytes | memoryview]:
            yield line
            for name in names:
                raw = memoryview(self._store.get(name))
                yield raw
                yield b"\0" * (-len(raw) % ALIGNMENT)

        writer.create_copy(segment.name, parts())
        return segment
