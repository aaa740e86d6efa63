"""Dead letters are kept for a time and up to a size: DEAD LETTER RETENTION of their source, 7 days and 1 GiB if it names none.

    log ──► bytes of each source's letters ──► too many, or the oldest is too old ──► the oldest are deleted as DELETE DEAD LETTERS does

The age of a letter counts from its column `since`, the time of its tick. Letters from before there was that column have no age.
"""

from __future__ import annotations

import logging
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc

from engine.ddl.letters import AGE, BYTES, RETENTION_BYTES, RETENTION_MS
from engine.runtime.engine import Engine
from engine.runtime.letters import KEY, Letters, of_source
from lake.catalog import Item
from lake.errors import Gone
from lake.types import WEIGHT

log = logging.getLogger("tailgate.engine")

LOOK_S = 10.0  # between two looks
LETTER_BYTES = 100  # of a letter besides its key and value
LEFT = 0.9  # of the size, when the oldest were deleted


class Expiring(threading.Thread):
    """Runs until the engine stops. A look that fails is repeated in the next."""

    def __init__(self, engine: Engine, letters: Letters) -> None:
        super().__init__(name="letters", daemon=True)
        self._engine, self._letters = engine, letters
        self._n = 0
        self._bytes: dict[int, int] = {}  # by relation of letters, as of entry n
        self._oldest: dict[int, int] = {}  # its oldest letter's time is not before this

    def run(self) -> None:
        while not self._engine.stopping:
            time.sleep(LOOK_S)
            try:
                self.look()
            except Gone:  # entries that were not looked at in time
                self._bytes.clear()
                self._oldest.clear()
            except Exception:
                log.exception("dead letters could not be removed; it is tried again")

    def look(self) -> None:
        """Deletes the letters that are too old or too many."""
        engine = self._engine
        newest, catalog = engine.newest, engine.catalog
        sources = {of_source(i, catalog).id: i for i in catalog.items.values() if i.kind == "source"}
        known = set(self._bytes)
        for entry in engine.lake.log.after(self._n, newest.n) if known else ():
            for section in entry.header.relations:
                if section.relation in known and (changes := entry.changes(section.relation)) is not None:
                    self._note(section.relation, changes)
        for relation in sources.keys() - known:
            self._note(relation, engine.lake.snapshot(relation, newest.time))
        self._n = newest.n
        for relation, source in sources.items():
            age, size = source.options.get(AGE, RETENTION_MS), source.options.get(BYTES, RETENTION_BYTES)
            if self._bytes[relation] > size or self._oldest.get(relation, newest.time) < newest.time - age:
                self._delete(source, relation, newest.time - age, size)

    def _note(self, relation: int, changes: pa.Table) -> None:
        """Adds changes, or all rows of a relation that was not known."""
        weights = changes[WEIGHT]
        self._bytes[relation] = self._bytes.get(relation, 0) + (pc.sum(pc.multiply(_sizes(changes), weights)).as_py() or 0)
        oldest = pc.min(changes["since"].filter(pc.greater(weights, 0))).as_py()
        if oldest is not None:
            ms = round(oldest.timestamp() * 1000)
            self._oldest[relation] = min(ms, self._oldest.get(relation, ms))

    def _delete(self, source: Item, relation: int, before: int, size: int) -> None:
        def chosen(letters: pa.Table) -> pa.Table:
            letters = letters.sort_by([("since", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
            limit = pa.scalar(before, pa.timestamp("ms", "UTC"))
            old = pc.fill_null(pc.less(letters["since"], limit.cast(letters["since"].type)), False)
            total = pc.sum(_sizes(letters)).as_py() or 0
            if total > size:  # nulls are last in the order, and so are the newest
                before_each = pc.subtract(pc.cumulative_sum(_sizes(letters)), _sizes(letters))
                old = pc.or_(old, pc.less(before_each, total - int(size * LEFT)))
            rest = letters["since"].filter(pc.invert(old)).drop_null()
            self._oldest.pop(relation, None)
            if len(rest):
                self._oldest[relation] = round(pc.min(rest).as_py().timestamp() * 1000)
            return letters.filter(old).select(KEY)

        if deleted := self._letters.delete(source, chosen):
            log.warning('%d dead letters of source "%s" were removed: they were too old or too many', deleted, source.name)


def _sizes(letters: pa.Table) -> pa.ChunkedArray:
    """Bytes of each letter."""
    lengths = (pc.fill_null(pc.binary_length(letters[name]), 0).cast(pa.int64()) for name in ("key", "value"))
    return pc.add(pc.add(*lengths), LETTER_BYTES)
