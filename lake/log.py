"""Reading the log: the newest entry, the entries after one, and waiting for the next.

    newest() ── is n+1 there? ── no ──► what is known          two looks at a folder, no listing
                    └─ yes ──► sync the folder ──► n+1 is known, look for n+2

An entry is seen only when it is durable (W2): the folder is synced by whoever finds a new name in it, since the writer makes
the name first and syncs it after. Entries are whole because names are given to whole files only. An entry is looked for in
log/ and then in segments/: it is put there before it goes here.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lake.entry import Entry, Header, decode_header
from lake.errors import Gone
from lake.files import sync_folder
from lake.segments import Segments

POLL_S = 0.01  # just after an entry came: ticks follow each other at 100-200 ms, and this is what they wait at most
POLL_IDLE_S = 0.05  # when none came for a second; 20 looks a second are 0.1 % of a core
IDLE_AFTER_S = 1.0
LISTING_S = 1.0  # how often a reader that sees nothing new makes sure that it did not miss what was removed meanwhile

_ENTRY = re.compile(r"[1-9][0-9]*$")


class Log:
    """The log of one lake, for any number of threads. One of these remembers how far it has looked."""

    def __init__(self, folder: Path, segments: Path) -> None:
        self.folder = folder
        self.segments = Segments(segments)
        self._came = threading.Condition()
        self._newest: Header | None = None
        self._listed = 0.0

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
        elif known is None or (time.monotonic() - self._listed > LISTING_S and not os.path.exists(self._path(n))):
            n = max(self.numbers(), default=0)
        self._listed = time.monotonic()
        if n <= (known.n if known else 0):
            return None
        sync_folder(self.folder)
        return self.header(n)

    def numbers(self) -> list[int]:
        """The numbers of the entries in log/, in order."""
        return sorted(int(name) for name in os.listdir(self.folder) if _ENTRY.match(name))

    def first(self) -> int:
        """The number of the oldest entry that can be read; 0 if there is none."""
        segments = self.segments.ranges()
        return segments[0].first if segments else min(self.numbers(), default=0)

    # ---- reading ---------------------------------------------------------------------------------------------------------

    def read(self, n: int) -> Entry:
        """Entry n. `Gone` if it is no longer, or not yet, there."""
        for _ in range(2):  # the second look is for an entry that moved into a segment between the two of the first
            with contextlib.suppress(FileNotFoundError):
                return self._from_file(n)
            with contextlib.suppress(FileNotFoundError):
                if (raw := self.segments.find(n)) is not None:
                    return self._from_buffer(raw)
        raise Gone(f"entry {n} of the log is not there", hint="Start again from a newer time.")

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
        newest = self.newest()
        if newest is None or newest.time <= time:
            return newest
        low, high = self.first(), newest.n
        found = None
        while low < high:
            middle = (low + high) // 2
            header = self.header(middle)
            if header.time <= time:
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
