"""Reading the log: the newest entry, the entries after a given one, and waiting for the next.

    first look: list the folder ──► n
    newest() ── n+1 exists? ── no ──► n exists? ── yes ──► n is the newest              two look-ups, no listing
                    │                     └─ no, it was rolled ──► list the folder
                    └─ yes ──► sync the folder ──► n+1 is durable, look for n+2

Readers see an entry only when it is durable (W2). In a folder, the writer creates the name first and syncs
the folder later, so a reader that finds a new name syncs the folder itself. Entries are always complete,
because only complete objects get a name. An entry is searched in log/ and then in segments/: it is
copied to a segment before it is removed from log/.

The process that appends entries knows them, and so does a process that receives them from the engine (`lake.wake`). While
this lasts, `newest` does not look at the store (`looks`), and the newest entries are read from memory.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tailgate.lake.errors import Gone
from tailgate.lake.log.entry import GONE, HEAD_BYTES, LOG, START_AGAIN, Entry, Header, decode_header, first_line
from tailgate.lake.log.recent import RecentEntries
from tailgate.lake.log.segments import Range, Segments
from tailgate.lake.store import Store
from tailgate.lake.store.interface import numbers_in

POLL_IDLE_S = 0.05  # after a second without entries; 20 polls a second take 0.1 % of a core
IDLE_AFTER_S = 1.0
SECTION = ".arrow"  # suffix of a section in a separate object
HEADERS_MAX = 1_000  # that searches keep in memory: a search of an hour reads 17


class Log:
    """The log of one lake, safe for use by many threads. An instance remembers the newest entry that it has seen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.segments = Segments(store)
        self._came = threading.Condition()
        self._newest: Header | None = None
        self._durable = 0  # the newest entry whose name is known to be durable
        self._headers: dict[int, Header] = {}
        self._listeners: list[Callable[[int, bytes | None], None]] = []
        self._recent = RecentEntries()
        self.looks = True  # whether `newest` looks at the store; not where entries are announced, or `look` is called at times

    # ---- the newest and the oldest entry -----------------------------------------------------------------------------------

    def newest(self) -> Header | None:
        """Returns the header of the newest durable entry, None before the first. The newest known one if `looks` is false."""
        announced = self._newest
        if not self.looks and announced is not None and announced.n >= self._durable:
            return announced
        return self.look()

    def look(self) -> Header | None:
        """Returns the header of the newest durable entry as `newest` does, and looks at the store in any case."""
        announced = self._newest
        later = self._later(announced)
        return announced if later is None else self.announce(later)

    def stored(self) -> Header | None:
        """Returns the header of the newest durable entry in the store, without announcing it: the writer announces its entries itself."""
        announced = self._newest
        return self._later(announced) or announced

    def listed(self) -> Header | None:
        """Returns the header of the newest entry of a list of all entries, None before the first.

        While older entries are removed, `newest` may return one of them for a moment. This does not, so a writer begins with it.
        """
        n = max(self.numbers(), default=0)
        if n == 0:
            return None
        self._store.sync([LOG])
        return self.announce(self.header(n))

    @property
    def seen(self) -> Header | None:
        """Returns the newest entry that this process has seen, without a look at the store."""
        return self._newest

    def announce(self, header: Header, content: bytes | None = None) -> Header:
        """Announces a complete and durable entry to waiting readers, and returns the newest one.

        `content`: the bytes of the entry, if they are known and not too many.
        """
        if not self.looks and content is not None:
            self._recent.put(header.n, content)
        with self._came:
            if self._newest is None or self._newest.n < header.n:
                self._newest = header
            self._came.notify_all()
            newest = self._newest
        for listener in self._listeners:
            listener(newest.n, content if newest is header else None)
        return newest

    def on_announce(self, listener: Callable[[int, bytes | None], None]) -> None:
        """Calls `listener` with the number of each entry that this process announces, and its bytes or None."""
        self._listeners.append(listener)

    def receive(self, n: int, content: bytes | None) -> None:
        """Records that the engine has announced entry `n`, so that readers need not make it durable. `content`: its bytes or None."""
        self._durable = max(self._durable, n)
        if content is not None and (self._newest is None or self._newest.n < n):
            self.announce(decode_header(first_line(content)), content)

    def notify(self) -> None:
        """Wakes every `wait` so that it looks for a new entry at once."""
        with self._came:
            self._came.notify_all()

    def _later(self, announced: Header | None) -> Header | None:
        """Returns the newest entry if it is later than `announced`, else None."""
        n = announced.n if announced else max(self.numbers(), default=0)
        if announced is None and n == 0:
            return None
        if self._store.exists(name(n + 1)):
            while self._store.exists(name(n + 1)):
                n += 1
        elif announced is not None and not self._store.exists(name(n)):  # the newest entry is never rolled, so n is not the newest
            n = max(self.numbers(), default=0)
            if n == 0:
                raise FileNotFoundError(errno.ENOENT, "the entries of the log are missing", LOG)
        if n <= (announced.n if announced else 0):
            return None
        if n > self._durable:
            self._store.sync([LOG])
        return self.header(n)

    def size(self) -> int:
        """Returns the bytes of the objects in log/."""
        return sum(self._store.sizes(LOG).values())

    def numbers(self) -> list[int]:
        """Returns the numbers of the entries in log/, in order."""
        return self._store.numbers(LOG)

    def first(self) -> int:
        """Returns the number of the oldest readable entry; 0 if there is none.

        The log consists of the entries that reach the newest one without a gap. After a power loss,
        older files may reappear because their removal was not durable.
        """
        return self.listing().first

    def listing(self) -> Listing:
        """Returns the names in log/ and segments/."""
        names = self._store.names(LOG)
        return Listing(numbers_in(names), [name for name in names if name.endswith(SECTION)], self.segments.ranges())

    # ---- reading ---------------------------------------------------------------------------------------------------------

    def read(self, n: int) -> Entry:
        """Returns entry n. Raises `Gone` if it was removed or does not exist yet."""
        if (recent := self._recent.get(n)) is not None:
            return self._from_buffer(recent)
        for _ in range(2):  # the second attempt finds an entry that moved into a segment during the first
            with contextlib.suppress(FileNotFoundError):
                return self._from_object(n)
            with contextlib.suppress(FileNotFoundError):
                if (raw := self.segments.find(n)) is not None:
                    return self._from_buffer(raw)
        raise Gone(GONE, hint=START_AGAIN)

    def header(self, n: int) -> Header:
        """Returns the header of entry n. Raises `Gone` as `read` does."""
        if (recent := self._recent.get(n)) is not None:
            return decode_header(first_line(recent))
        try:
            return decode_header(self._line(n))
        except FileNotFoundError:
            return self.read(n).header

    def after(self, n: int, upto: int | None = None) -> Iterator[Entry]:
        """Yields the entries after n that exist now, at most up to `upto`. Raises `Gone` (R3) if the next one was removed."""
        last = self.newest()
        for number in range(n + 1, min(upto or (last.n if last else 0), last.n if last else 0) + 1):
            yield self.read(number)

    def wait(self, n: int, timeout: float) -> Header | None:
        """Waits for an entry later than n and returns the newest one; returns None after `timeout` seconds."""
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
                    poll = self._store.look_s if waited < IDLE_AFTER_S else max(self._store.look_s, POLL_IDLE_S)
                    self._came.wait(min(poll, timeout - waited))

    def find(self, time: int) -> Header | None:
        """Returns the newest entry with a time of at most `time`; None if all remaining entries are later."""
        return self._last(lambda header: header.time <= time)

    def aged(self, age: int, first: int | None = None) -> Header | None:
        """Returns the newest entry that is at least `age` ms older (by entry age) than the newest entry; None if there is none.

        `first`: the oldest entry, if the caller knows it.
        """
        newest = self.newest()
        return None if newest is None else self._last(lambda header: header.age <= newest.age - age, first)

    def _last(self, holds: Callable[[Header], bool], first: int | None = None) -> Header | None:
        """Returns the newest entry for which `holds` is true, or None. If it holds for an entry, it must hold for all older ones."""
        newest = self.newest()
        if newest is None or holds(newest):
            return newest
        low, high = self.first() if first is None else first, newest.n
        last = None
        while low < high:
            middle = (low + high) // 2
            header = self._searched(middle)
            if holds(header):
                last, low = header, middle + 1
            else:
                high = middle
        return last

    def _searched(self, n: int) -> Header:
        """Returns the header of entry n, from memory if a search has read it before: later searches read mostly the same ones."""
        header = self._headers.get(n)
        if header is None:
            header = self._headers[n] = self.header(n)
            if len(self._headers) > HEADERS_MAX:
                self._headers.pop(next(iter(self._headers)))
        return header

    def _line(self, n: int) -> bytes:
        """Returns the first line of the object of entry n."""
        head = self._store.get_range(name(n), 0, HEAD_BYTES)
        return first_line(head if b"\n" in head else self._store.get(name(n)))

    def _from_object(self, n: int) -> Entry:
        line = self._line(n)

        @functools.cache  # one buffer for all sections
        def body() -> pa.Buffer:
            try:
                return self._store.get(name(n)).slice(len(line))
            except FileNotFoundError:  # the entry has moved into a segment
                return self.read(n).body()

        return Entry(decode_header(line), body, self._store, len(line), is_loaded=False)

    def _from_buffer(self, raw: pa.Buffer) -> Entry:
        line = first_line(raw)
        return Entry(decode_header(line), lambda: raw.slice(len(line)), self._store, len(line), is_loaded=True)


@dataclass(frozen=True, slots=True)
class Listing:
    """The names in the log's folders at a moment: the entries in log/, the sections in separate objects, and the segments."""

    numbers: Sequence[int]
    sections: Sequence[str]
    ranges: Sequence[Range]

    @property
    def first(self) -> int:
        """Returns the oldest readable entry; 0 if there is none: see `Log.first`."""
        if not self.numbers:
            return 0
        low = self.numbers[-1]
        for n in reversed(self.numbers):
            if n < low - 1:
                break
            low = n
        for segment in reversed(self.ranges):
            if segment.last < low - 1:
                break
            low = min(low, segment.first)
        return low


def name(n: int) -> str:
    """Returns the name of entry n in the store."""
    return f"{LOG}/{n}"


def carried(header: Header | None) -> Header:
    """Returns the defaults of the next entry: the newest header without what belongs to it alone."""
    if header is None:
        return Header(n=0, time=0, epoch=0, kind="epoch")
    return replace(header, catalog=None, relations=(), writes=(), released={}, single=None, repeated=(), state_files=())
