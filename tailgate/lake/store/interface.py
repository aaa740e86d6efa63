"""The interface of a lake's storage (ADR 0021).

An object has a name, a path below the lake with `/` between its parts, and a content:

    create   if the name is free       an entry of the log, of the inbox: the one that succeeds has committed
    replace  if it is unchanged        positions and announcements that several processes write
    put      in any case               what one process writes
    adopt, copy                        from a file of this machine, from another object
    get, get_range, names              reading; `names` lists one folder
    remove, discard                    durably, or some time later

A content is complete and durable before a reader can see it under its name, and is never changed in place.
After `create`, `put`, `replace` and `adopt` the name is durable, too. A name that another process
creates may be visible earlier, and so may that of a copy; `sync` makes it durable. Folders exist as soon as they contain something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from tailgate.lake.host.locks import NoLocks

__all__ = ["FencedWriter", "Lock", "NoLocks", "Revoked", "Store", "StoreUnavailable", "nothing", "numbers_in"]


class Revoked(Exception):
    """A later writer has fenced this one; nothing was created. `FencedWriter.renew` permits another attempt."""


class StoreUnavailable(OSError):
    """A remote store does not answer, or refuses the request."""


def nothing() -> None:
    """Does nothing."""


def numbers_in(names: Iterable[str]) -> list[int]:
    """Returns those of the names that are positive integers, in ascending order."""
    return sorted(int(name) for name in names if name.isdecimal() and name[0] != "0")


class Store(Protocol):
    """The objects of one lake, for many threads. Methods that read an object raise FileNotFoundError if there is none.

    `look_s`: between two looks of a reader that waits for a name.
    `options`: the options with which delta-rs opens a location.
    `boot`: differs if objects that were not synced may have been lost since; empty if that is not known.
    """

    look_s: float

    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def boot(self) -> bytes: ...

    # ---- reading ---------------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> pa.Buffer:
        """Returns the content of an object."""

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Returns a part of the content; less than `length` bytes at its end."""

    def get_version(self, name: str) -> tuple[bytes, str]:
        """Returns the content and its version, for `replace`. Equal contents may have equal versions."""

    def exists(self, name: str) -> bool:
        """Returns whether there is an object with this name, durable or not."""

    def names(self, folder: str) -> list[str]:
        """Returns the names of the objects and folders directly in a folder, without the folder, in order.

        Those that begin with a dot are not listed.
        """

    def numbers(self, folder: str) -> list[int]:
        """Returns those of `names` that are positive integers, in ascending order."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Returns the bytes of the objects directly in a folder, by their names without the folder."""

    def size(self, name: str) -> int:
        """Returns the bytes of an object."""

    # ---- writing ---------------------------------------------------------------------------------------------------------------

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        """Creates an object. If the name is taken, changes nothing and returns False.

        `visible` is called if the name exists, but may still be lost. Raises `Uncertain` if the name exists and
        could not be made durable. After any other error nothing has changed.
        """

    def put(self, name: str, content: bytes) -> None:
        """Creates or replaces an object."""

    def replace(self, name: str, content: bytes, version: str | None) -> bool:
        """Replaces an object if it still has this version; None means that it does not exist. Returns whether it did.

        All writers of the name must use `replace`. If a response of a remote store is lost, False may also mean that
        the object was replaced by this call, and after that by another process. Raises `Uncertain` if the store
        does not answer at all.
        """

    def copy(self, name: str, target: str) -> None:
        """Creates or replaces the object `target` with the content of another one. It is durable after `sync` of its folder."""

    def adopt(self, path: Path, name: str) -> int:
        """Creates or replaces an object from a file of this machine, which is not changed any more. Returns its bytes."""

    def export(self, name: str, path: Path) -> None:
        """Creates a file of this machine with the content of an object, as a link if that is possible."""

    def export_tree(self, folder: str, target: Path, earlier: Sequence[Path], is_needed: Callable[[str], bool]) -> None:
        """Exports the objects below a folder, if they are needed, to files with their names below `target`.

        `earlier`: such targets. A file in them is linked if it is the same object. `is_needed` gets the part of a name after the folder.
        Objects may be removed meanwhile.
        """

    # ---- removal, durability ---------------------------------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        """Removes an object durably, if it exists. Raises OSError if it cannot be removed."""

    def discard(self, names: Iterable[str]) -> None:
        """Removes objects that are no longer needed. Failures are logged: correctness never depends on the removal."""

    def discard_folder(self, folder: str) -> None:
        """Removes everything below a folder, as `discard` does."""

    def discard_unfinished(self, folder: str) -> None:
        """Removes what Spark had not finished below a folder when it was killed."""

    def sync(self, names: Iterable[str]) -> None:
        """Makes objects, and the names in folders, durable, no matter which process wrote them."""

    # ---- processes -------------------------------------------------------------------------------------------------------------

    def writer(self) -> FencedWriter:
        """Returns a new writer, which later ones can fence."""

    def lock(self, name: str) -> Lock:
        """Returns a lock, which the calling process does not hold yet."""

    def locked(self, name: str) -> bool:
        """Returns whether a process holds a lock; False if the store has no locks."""

    def renew(self, name: str, holds: Callable[[bytes], bool]) -> bool:
        """Renews a lease on an object, without changing it, if `holds` is true of its content. Returns whether it is."""

    def renewed(self, name: str) -> tuple[bytes, Hashable]:
        """Returns the content of the object of a lease, and a value that differs after each renewal, and after each write."""

    def location(self, name: str) -> str:
        """Returns the path or URL under which other libraries (delta-rs, Spark) find an object or a folder."""


class FencedWriter(Protocol):
    """A writer of names that are removed later, although no replaced writer may create them again (W1)."""

    def renew(self) -> None:
        """Continues after `Revoked`. Everything that the caller read before may be out of date."""

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        """Creates an object as `Store.create` does.

        If a later writer has freed the name, creates nothing: raises `Revoked`, or returns False. The last part of the
        name is a number, the first one after those that the writer has seen in the folder, or that it has created.
        """

    def create_copy(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """Creates an object whose content follows from its name, unless it exists. A replaced writer may create it again."""

    def fence_others(self) -> None:
        """Fences all other writers: they create no name that is freed from now on until they have renewed themselves."""

    def free(self, names: Iterable[str]) -> None:
        """Removes objects durably, after all other writers are fenced."""

    def close(self) -> None:
        """Ends the writer."""


class Lock(Protocol):
    """A lock of one process on a name, held from `take`, `wait` or `replace` to `release`. They raise `NoLocks` if the store has none."""

    def take(self) -> bool:
        """Returns whether this process now holds the lock."""

    def wait(self) -> None:
        """Waits until this process holds the lock."""

    def replace(self) -> None:
        """Takes the lock from the process that holds it."""

    def release(self) -> None:
        """Releases the lock. May be called again."""
