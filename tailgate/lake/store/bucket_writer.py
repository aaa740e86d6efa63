"""Fencing of replaced writers in a bucket: names that a writer may still create are never removed, but marked as freed.

A request cannot be conditional on a second object, so a paused writer cannot be stopped. But the names
that it may create are known. A writer numbers its objects, and after its first one it creates only the
successor of its newest one. The successor can be free, or it is the first object of the next writer:

    writer A   1, 2, 3 ─► ···· paused ···· ─► creates 4 ─► fails: the name is not free
    writer B             ─► records 4 in fencing/names ─► 4, 5, 6, … ─► frees 1 … 6: 4 is marked, the others are removed

So only first names matter. Before a writer creates its first name, it records the name, for ever. A writer
that frees names marks those that are recorded. A recorded name that another writer had freed before is
noticed by fencing/generation, which each writer changes before it lists the recorded names:

    writer C   reads the generation ─► reads the newest object, 2 ─► records 3 ─► the generation has changed: Revoked
    writer B                                           changes the generation ─► no name is recorded ─► removes 3
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Protocol

from tailgate.lake.store.interface import Revoked, Store, nothing

NAMES, GENERATION = "fencing/names", "fencing/generation"


class MarkingStore(Store, Protocol):
    """A store that can mark names as freed."""

    def names_below(self, folder: str) -> list[str]:
        """Returns the names of all objects below a folder."""

    def mark_freed(self, name: str) -> None:
        """Replaces an object by an empty one, which readers do not see. Its name cannot be created any more."""

    def remove_all(self, names: Iterable[str]) -> None:
        """Removes objects durably. Raises OSError if one of them cannot be removed."""


class BucketWriter:
    """A writer of numbered names in each folder."""

    def __init__(self, store: MarkingStore) -> None:
        self._store = store
        self.renew()

    def renew(self) -> None:
        self._generation = self._read_generation()
        self._next: dict[str, str] = {}  # by folder: the name after the newest that this writer has created

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        folder, _, number = name.rpartition("/")
        if self._next.get(folder) != name:
            self._store.put(f"{NAMES}/{name}", b"\n")
            if self._read_generation() != self._generation:
                raise Revoked
        created = self._store.create(name, parts, visible=visible)
        if created:
            self._next[folder] = f"{folder}/{int(number) + 1}"
        return created

    def create_copy(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        self._store.create(name, parts)

    def fence_others(self) -> None:
        """Does nothing: `free` fences other writers."""

    def free(self, names: Iterable[str]) -> None:
        self._generation = uuid.uuid4().bytes
        self._store.put(GENERATION, self._generation)
        recorded = {name.removeprefix(f"{NAMES}/") for name in self._store.names_below(NAMES)}
        freed = set(names)
        for name in freed & recorded:
            self._store.mark_freed(name)
        self._store.remove_all(sorted(freed - recorded))

    def close(self) -> None:
        """Does nothing: the recorded names remain."""

    def _read_generation(self) -> bytes | None:
        try:
            return bytes(self._store.get(GENERATION))
        except FileNotFoundError:
            return None
