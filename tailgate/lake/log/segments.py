"""Segments: many older entries in one file, so that an hour of ticks is a few dozen files instead of twenty thousand.

    segments/<first>-<last>     one line of JSON (first, last, offset of each entry), then the unchanged entries

A segment is complete before its name exists, and its entries are removed from log/ later. So a reader
that does not find an entry in log/ finds it here. Sections in separate files stay in log/.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailgate.lake.log.entry import ALIGNMENT
from tailgate.lake.log.fencing import WriterFolder

ENTRIES = 1_000  # per segment: three minutes of ticks, and an index of some 15 KB

_NAME = re.compile(r"([0-9]+)-([0-9]+)$")


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A segment by its first and last entry."""

    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.first}-{self.last}"


class Segments:
    """The segments of one log. The last one that was read stays memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: tuple[Range, list[int], pa.Buffer] | None = None

    def ranges(self) -> list[Range]:
        """Returns all segments, oldest first."""
        matches = (_NAME.match(name) for name in os.listdir(self.folder))
        return sorted(Range(int(m[1]), int(m[2])) for m in matches if m)

    def find(self, n: int) -> pa.Buffer | None:
        """Returns the bytes of entry n, including its header; None if no segment has it."""
        opened = self._open
        if opened is None or not opened[0].first <= n <= opened[0].last:
            segment = next((r for r in self.ranges() if r.first <= n <= r.last), None)
            if segment is None:
                return None
            opened = self._open = self._map(segment)
        segment, starts, raw = opened
        i = n - segment.first
        return raw.slice(starts[i], starts[i + 1] - starts[i])

    def _map(self, segment: Range) -> tuple[Range, list[int], pa.Buffer]:
        with pa.memory_map(str(self.folder / segment.name)) as file:
            raw = file.read_buffer()
        with open(self.folder / segment.name, "rb") as plain:
            line = plain.readline()
        return segment, json.loads(line)["starts"], raw.slice(len(line))

    def roll(self, first: int, paths: Sequence[Path], folder: WriterFolder) -> Range:
        """Writes the segment of entries `first`, first+1, … from their files. May be repeated."""
        segment = Range(first, first + len(paths) - 1)
        starts = [0]
        for path in paths:
            size = path.stat().st_size
            starts.append(starts[-1] + size + -size % ALIGNMENT)
        line = json.dumps({"first": segment.first, "last": segment.last, "starts": starts}, separators=(",", ":")).encode()
        line += b" " * (-(len(line) + 1) % ALIGNMENT) + b"\n"

        def parts() -> Iterator[bytes]:
            yield line
            for path in paths:
                raw = path.read_bytes()
                yield raw + b"\0" * (-len(raw) % ALIGNMENT)

        folder.create(self.folder / segment.name, parts())
        return segment
