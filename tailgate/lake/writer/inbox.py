"""The inbox: input of ticks that does not come from Kafka. Its numbered entries are durable before they are acknowledged.

    write(records) ──► inbox/<epoch>/<n> is created and durable ──► n ──► acknowledged, if the epoch is still current
                           └── failed ──► <n> becomes empty, or the engine ends
    a tick reads (last, n] ──► the log's entry has `inbox: n` ──► remove(upto n)

Numbers are never reset during the life of a lake. The log's newest entry has the number of the last
entry that a tick has read; later ones are read by the next tick, also after a crash. A number belongs
to one write. If a write fails after its entry may exist, the entry is replaced by one without records: in
a bucket, the request that creates it may arrive later, and is then refused, because the name is taken. If
it cannot be replaced, the engine ends (`Uncertain`) before it accepts another write.

Every epoch has a folder. An engine that was paused and replaced can write only to its old folder,
which is no longer read, so an entry is acknowledged after its tick is in the log, or after `check`. A new
epoch takes over the unread entries of the previous one: inbox/<epoch>/state says whether it has all of
them. A folder that is not complete is ignored, or filled again.

The JVM reads entries from the store of this machine (`Lake.local`). For a lake in a bucket, they are copied there.

An entry with rows that are committed together with a change of the catalog begins with a record of the channel UNCOMMITTED. It is
committed by the entry of the log alone. If that does not follow, `empty` or the next epoch makes it an entry without records.

An entry is a sequence of records, big-endian: channel, key and value, each as a length (4 bytes, -1
for NULL) and bytes; then partition (4), offset (8) and milliseconds (8); then the total length of the
headers, and name and value of each as above. tailgate/engine/java's InboxSource reads the same format.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tailgate.lake.errors import IoError, Replaced, TailgateError, Uncertain, from_system
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.store import Store

FOLDER = "inbox"
STATE, TAKING, COMPLETE = "state", b"taking over\n", b"complete\n"  # the object in each folder, and its contents
TABLE = "$table/"  # prefix of the channels of tables; the table's id follows
WRITE_ID = "write"  # the header with the id of a write, of its first record
UNCOMMITTED = f"{TABLE}0"  # the channel of the first record of an entry that is committed with a change of the catalog


@dataclass(frozen=True, slots=True)
class Record:
    """A record with Kafka's columns; `timestamp` in milliseconds."""

    channel: str
    key: bytes | None
    value: bytes | None
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def parts(self) -> list[bytes]:
        """Returns the bytes of the record, in parts."""
        channel = self.channel.encode()
        return [
            struct.pack(">i", len(channel)),
            channel,
            *_sized(self.key),
            *_sized(self.value),
            struct.pack(">iqq", self.partition, self.offset, self.timestamp),
            *_sized(b"".join(p for k, v in self.headers for p in (*_sized(k.encode()), *_sized(v))) if self.headers else None),
        ]


def _sized(value: bytes | None) -> list[bytes]:
    return [struct.pack(">i", -1)] if value is None else [struct.pack(">i", len(value)), value]


@dataclass(frozen=True, slots=True)
class Stored:
    """A record of an entry. `headers`: their bytes, as in the module's description."""

    channel: str
    key: memoryview | None
    value: memoryview | None
    headers: memoryview | None

    @property
    def write(self) -> str | None:
        """Returns the id of the write whose first record this is, or None."""
        if self.headers is None or self.headers[4 : 4 + len(WRITE_ID)] != WRITE_ID.encode():
            return None
        return bytes(self.headers[8 + len(WRITE_ID) :]).decode()


def records(data: bytes | pa.Buffer) -> Iterator[Stored]:
    """Yields the records of an entry."""
    view, at = memoryview(data).cast("B"), 0

    def next_value() -> memoryview | None:
        nonlocal at
        (length,) = struct.unpack_from(">i", view, at)
        at += 4
        if length < 0:
            return None
        at += length
        return view[at - length : at]

    while at < len(view):
        channel, key, value = next_value(), next_value(), next_value()
        assert channel is not None
        at += 20
        yield Stored(bytes(channel).decode(), key, value, next_value())


def is_uncommitted(store: Store, entry: str) -> bool:
    """Returns whether an entry that no tick has read belongs to a change of the catalog, which was not committed."""
    channel = UNCOMMITTED.encode()
    head = struct.pack(">i", len(channel)) + channel
    return store.get_range(entry, 0, len(head)) == head


class Inbox:
    """The writer of the inbox in one epoch, safe for many threads.

    `consumed`: the last entry that the log had passed when the epoch began.
    """

    def __init__(self, lake: Lake, epoch: int, consumed: int) -> None:
        self._lake = lake
        self.epoch, self.consumed = epoch, consumed
        self._store, self._local = lake.store, lake.local
        self._lock = threading.Lock()
        self._failure: TailgateError | None = None
        epochs = self._store.numbers(FOLDER)
        if not _is_complete(self._store, epoch):
            before = [old for old in epochs if old < epoch and _is_complete(self._store, old)]
            _take_over(self._store, before[-1] if before else None, epoch, consumed)
        self.newest = max([consumed, *self._store.numbers(_folder(epoch))])
        for old in epochs:
            if old < epoch:
                self._store.discard_folder(_folder(old))
        if self._local is not self._store:
            self._local.discard_folder(FOLDER)
            for number in self._store.numbers(_folder(epoch)):
                self._local.put(self._name(number), bytes(self._store.get(self._name(number))))

    @property
    def location(self) -> str:
        """Returns where the JVM finds the entries."""
        return self._local.location(_folder(self.epoch))

    def write(self, entry: Iterable[Record], durable: Callable[[int], None] = lambda number: None) -> int:
        """Adds an entry durably, and returns its number. Calls `durable` with the number, before another entry can follow.

        If another epoch has begun, it may not read the entry, see `check`. Raises `Uncertain` if the entry may exist after a restart.
        After any other error it does not exist.
        """
        parts = [part for record in entry for part in record.parts()]
        with self._lock:
            if self._failure is not None:
                raise self._failure
            number = self.newest + 1
            name = self._name(number)
            crash.point("inbox.entry")
            if self._local is not self._store:
                with _working_folder():
                    self._local.put(name, b"".join(parts))
            try:
                if not self._store.create(name, parts, visible=lambda: crash.point("inbox.link")):
                    self._failure = Uncertain("the inbox has an entry that this engine did not write")
                    raise self._failure
            except Uncertain as error:
                raise self._take_back(number, error) from error
            crash.point("inbox.linked")
            self.newest = number
            durable(number)
            return number

    def empty(self, number: int) -> None:
        """Removes the records of an entry that is not committed. Raises OSError if they may be there."""
        for store in dict.fromkeys((self._store, self._local)):
            store.put(self._name(number), b"")

    def _take_back(self, number: int, error: TailgateError) -> TailgateError:
        """Empties an unacknowledged entry and returns the error for its write. If that fails, all later writes fail too."""
        if self._failure is None:
            try:
                self.empty(number)
                self.check()
            except OSError:
                self._failure = error
            except Replaced as replaced:
                return replaced
            else:
                self.newest = number
                return IoError(error.message)
        return self._failure

    def check(self) -> None:
        """Raises `Replaced` if another epoch has begun, which may have taken over the newest entry or not."""
        newest = self._lake.log.stored()
        if newest is not None and newest.epoch != self.epoch:
            self._failure = Replaced("another engine writes the log of this lake")
            raise self._failure

    def read(self, after: int, upto: int) -> Iterator[Stored]:
        """Yields the records of entries (after, upto]. Raises FileNotFoundError for one that was removed after its tick."""
        for number in range(after + 1, upto + 1):
            yield from records(self._local.get(self._name(number)))

    def remove(self, after: int, upto: int) -> None:
        """Removes entries (after, upto], which the log has passed."""
        names = [self._name(number) for number in range(after + 1, upto + 1)]
        for store in {self._store, self._local}:
            store.discard(names)

    def _name(self, number: int) -> str:
        return f"{_folder(self.epoch)}/{number}"


@contextmanager
def _working_folder() -> Iterator[None]:
    """Raises the errors of the working folder with a SQLSTATE."""
    try:
        yield
    except OSError as error:
        raise from_system(error) or IoError(f"could not write to the working folder: {error.strerror}") from error


def _folder(epoch: int) -> str:
    return f"{FOLDER}/{epoch}"


def _is_complete(store: Store, epoch: int) -> bool:
    """Returns whether an epoch has taken over all entries of the previous one. Earlier versions wrote no state."""
    folder = _folder(epoch)
    names = store.names(folder)
    return bool(names) and (STATE not in names or store.get(f"{folder}/{STATE}").to_pybytes() == COMPLETE)


def _take_over(store: Store, before: int | None, epoch: int, consumed: int) -> None:
    """Fills an epoch's folder with the entries after `consumed` of an earlier epoch, if there is one."""
    folder = _folder(epoch)
    store.put(f"{folder}/{STATE}", TAKING)
    for number in () if before is None else store.numbers(_folder(before)):
        if number > consumed:
            entry, target = f"{FOLDER}/{before}/{number}", f"{folder}/{number}"
            if is_uncommitted(store, entry):
                store.put(target, b"")
            else:
                store.copy(entry, target)
    store.sync([folder])
    crash.point("inbox.taken")
    store.put(f"{folder}/{STATE}", COMPLETE)
