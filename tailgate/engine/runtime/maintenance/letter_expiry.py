"""Deletes dead letters that are too old or too large in total.

    log ──► bytes of each source's letters ──► over the limit, or the oldest too old ──► delete the oldest

The limits are DEAD LETTER RETENTION of the source, by default 7 days and 1 GiB. The deletion is the
same as that of DELETE DEAD LETTERS. The age of a letter counts from its column `since`, the time of
its tick. Letters that were written before that column existed have no age.
"""

from __future__ import annotations

import logging
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.engine.ddl.kafka.dead_letters import RETENTION_BYTES, RETENTION_MS
from tailgate.engine.runtime.backfill.letters import KEY, Letters, of_source
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Source
from tailgate.lake.errors import Gone
from tailgate.lake.readers import reading
from tailgate.lake.types import WEIGHT

log = logging.getLogger("tailgate.engine")

LOOK_S = 10.0  # between two checks
LETTER_BYTES = 100  # overhead of a letter, in addition to its key and value
LEFT = 0.9  # fraction of the size limit that a deletion keeps


class Expiring(threading.Thread):
    """A thread that checks the dead letters until the engine stops.

    A failed check is repeated at the next interval.
    """

    def __init__(self, engine: Engine, letters: Letters) -> None:
        super().__init__(name="letters", daemon=True)
        self._engine, self._letters = engine, letters
        self._n = 0
        self._bytes: dict[int, int] = {}  # size of each letters relation, as of entry n
        self._oldest: dict[int, int] = {}  # lower bound of its oldest letter's time, in ms

    def run(self) -> None:
        while not self._engine.stopping:
            time.sleep(LOOK_S)
            try:
                self.look()
            except Gone:  # entries were removed before they could be read
                self._bytes.clear()
                self._oldest.clear()
            except Exception:
                log.exception("dead letters could not be removed; it is tried again")

    def look(self) -> None:
        """Deletes the letters that are too old, and the oldest ones of sources over their limit."""
        engine = self._engine
        newest, catalog = engine.newest, engine.catalog
        sources = {of_source(i, catalog).id: i for i in catalog.each(Source)}
        relations = set(self._bytes)
        for entry in engine.lake.log.after(self._n, newest.n) if relations else ():
            for section in entry.header.relations:
                if section.relation in relations and (changes := entry.changes(section.relation)) is not None:
                    self._note(section.relation, changes)
        for relation in sources.keys() - relations:
            self._note(relation, reading.snapshot(engine.lake, relation, newest.time))
        self._n = newest.n
        for relation, source in sources.items():
            age = RETENTION_MS if source.dead_letter_retention_ms is None else source.dead_letter_retention_ms
            size = RETENTION_BYTES if source.dead_letter_retention_bytes is None else source.dead_letter_retention_bytes
            if self._bytes[relation] > size or self._oldest.get(relation, newest.time) < newest.time - age:
                self._remove(source, relation, newest.time - age, size)

    def _note(self, relation: int, changes: pa.Table) -> None:
        """Adds the changes of a letters relation, or all rows of a new one, to its size and age."""
        weights = changes[WEIGHT]
        self._bytes[relation] = self._bytes.get(relation, 0) + (pc.sum(pc.multiply(_sizes(changes), weights)).as_py() or 0)
        oldest = pc.min(changes["since"].filter(pc.greater(weights, 0))).as_py()
        if oldest is not None:
            ms = round(oldest.timestamp() * 1000)
            self._oldest[relation] = min(ms, self._oldest.get(relation, ms))

    def _remove(self, source: Source, relation: int, before: int, size: int) -> None:
        """Deletes letters from before this time in ms, and the oldest ones above the size. Letters without an age count as the newest."""

        def chosen(letters: pa.Table) -> pa.Table:
            letters = letters.sort_by([("since", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
            limit = pa.scalar(before, pa.timestamp("ms", "UTC"))
            old = pc.fill_null(pc.less(letters["since"], limit.cast(letters["since"].type)), False)
            total = pc.sum(_sizes(letters)).as_py() or 0
            if total > size:  # the order is oldest first, with nulls at the end, like the newest
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
    """Returns the size of each letter in bytes."""
    lengths = (pc.fill_null(pc.binary_length(letters[name]), 0).cast(pa.int64()) for name in ("key", "value"))
    return pc.add(pc.add(*lengths), LETTER_BYTES)
