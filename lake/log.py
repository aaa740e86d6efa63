"""Reading the log: the newest entry, the entries after one, and waiting for the next.

    newest() ── is n+1 there? ── no ──► is n there? ── yes ──► n is the newest          two looks at a folder, no listing
                    │                        └─ no, it was rolled ──► list the folder
                    └─ yes ──► sync the folder ──► n+1 is known, look for n+2

An entry is seen only when it is durable (W2): the folder is synced by whoever finds a new name in it, since the writer makes
the name first and syncs it after. Entries are whole because names are given to whole files only. An entry is looked for in
log/ and then in segments/: it is copied to a segment before it is removed from log/.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lake import files
from lake.entry import GONE, START_AGAIN, Entry, Header, decode_header
from lake.errors import Gone
from lake.files import sync_folder
from lake.segments import Segments

POLL_S = 0.01  # just after an entry came: ticks follow each other at 100-200 ms, and this is what they wait at most
POLL_IDLE_S = 0.05  # when none came for a second; 20 looks a second are 0.1 % of a core
IDLE_AFTER_S = 1.0


class Log:
    """The log of one lake, for any number of threads. One of these remembers how far it has looked."""

    def __init__(self, folder: Path, segments: Path) -> None:
        self.folder = folder
        self.segments = Segments(segments)
        self._came = threading.Condition()
        self._newest: Header | None = None

    # ---- what is there ---------------------------------------------------------------------------------------------------

    def newest(self) -> Header | None:
        """The newest durable entry, None before the first."""
        known = self._newest
        found = self._later(known)
        return known if found is None else self.announce(found)

    def announce(self, header: Header) -> Header:
        """Makes an entry known that is whole and durable; the newest known is returned. For the writer, in its own process."""
        with self._came:
            if self._newest is None or self._newest.n < header.n:
                self._newest = header
            self._came.notify_all()
            return self._newest

    def notify(self) -> None:
        """Lets every `wait` look at once: for whoever hears by another way that an entry came."""
        with self._came:
            self._came.notify_all()

    def _later(self, known: Header | None) -> Header | None:
        """The newest entry if it is later than the known one."""
        n = known.n if known else 0
        if os.path.exists(self._path(n + 1)):
            while os.path.exists(self._path(n + 1)):
                n += 1
        elif known is None or not os.path.exists(self._path(n)):  # the newest entry is never rolled, so this one is not the newest
            n = max(self.numbers(), default=0)
        if n <= (known.n if known else 0):
            return None
        sync_folder(self.folder)
        return self.header(n)

    def numbers(self) -> list[int]:
        """The numbers of the entries in log/, in order."""
        return files.numbered(self.folder)

    def first(self) -> int:
        """The number of the oldest entry that can be read; 0 if there is none.

        The log is what reaches to the newest entry without a gap. Older files may reappear when the power fails: their removal was
        not durable.
        """
        numbers = self.numbers()
        if not numbers:
            return 0
        low = numbers[-1]
        for n in reversed(numbers):
            if n < low - 1:
                break
            low = n
        for segment in reversed(self.segments.ranges()):
            if segment.last < low - 1:
                break
            low = min(low, segment.first)
        return low

    # ---- reading ---------------------------------------------------------------------------------------------------------

    def read(self, n: int) -> Entry:
        """Entry n. `Gone` if it is no longer, or not yet, there."""
        for _ in range(2):  # the second look is for an entry that moved into a segment between the two of the first
            with contextlib.suppress(FileNotFoundError):
                return self._from_file(n)
            with contextlib.suppress(FileNotFoundError):
                if (raw := self.segments.find(n)) is not None:
                    return self._from_buffer(raw)
        raise Gone(GONE, hint=START_AGAIN)

    def header(self, n: int) -> Header:
        """The header of entry n alone. `Gone` as for `read`."""
        try:
            with open(self._path(n), "rb") as file:
                return decode_header(file.readline())
        except FileNotFoundError:
            return self.read(n).header

    def after(self, n: int, upto: int | None = None) -> Iterator[Entry]:
        """Entries n+1, n+2, … that are there now, or up to and including `upto`. `Gone` (R3) if the next one was removed."""
        last = self.newest()
        for number in range(n + 1, min(upto or (last.n if last else 0), last.n if last else 0) + 1):
            yield self.read(number)

    def wait(self, n: int, timeout: float) -> Header | None:
        """The newest entry as soon as it is later than n; None when `timeout` seconds have passed."""
        began = time.monotonic()
        while True:
            newest = self.newest()
            if newest is not None and newest.n > n:
                return newest
            waited = time.monotonic() - began
            if waited >= timeout:
                return None
            with self._came:
                if self._newest is newest:
                    poll = POLL_S if waited < IDLE_AFTER_S else POLL_IDLE_S
                    self._came.wait(min(poll, timeout - waited))

    def find(self, time: int) -> Header | None:
        """The newest entry whose time is not later than this; None if all that are left are later."""
        return self._last(lambda header: header.time <= time)

    def aged(self, age: int) -> Header | None:
        """The newest entry that is at least this much older than the newest entry of all, by their ages in ms; None if there is none."""
        newest = self.newest()
        return None if newest is None else self._last(lambda header: header.age <= newest.age - age)

    def _last(self, holds: Callable[[Header], bool]) -> Header | None:
        """The newest entry for which something holds that holds for all older entries too; None if it holds for none."""
        newest = self.newest()
        if newest is None or holds(newest):
            return newest
        low, high = self.first(), newest.n
        found = None
        while low < high:
            middle = (low + high) // 2
            header = self.header(middle)
            if holds(header):
                found, low = header, middle + 1
            else:
                high = middle
        return found

    def _path(self, n: int) -> str:
        return f"{self.folder}/{n}"

    def _from_file(self, n: int) -> Entry:
        path = self._path(n)
        with open(path, "rb") as file:
            line = file.readline()

        def body() -> pa.Buffer:
            try:
                with pa.memory_map(path) as file:
                    return file.read_buffer().slice(len(line))
            except FileNotFoundError:  # it moved into a segment since
                return self.read(n).body()

        return Entry(decode_header(line), body, self.folder)

    def _from_buffer(self, raw: pa.Buffer) -> Entry:
        line, _, _ = bytes(raw[: 1 << 16]).partition(b"\n")
        if len(line) == 1 << 16:
            line, _, _ = bytes(raw).partition(b"\n")
        return Entry(decode_header(line), lambda: raw.slice(len(line) + 1), self.folder)


def carried(header: Header | None) -> Header:
    """What the next entry takes over from the newest one unless told otherwise."""
    if header is None:
        return Header(n=0, time=0, epoch=0, kind="epoch")
    return replace(header, catalog=None, relations=())
