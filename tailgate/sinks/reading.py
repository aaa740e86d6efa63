"""Reading a relation for a sink: its rows at one time, then a step for each later time at which the sink may write.

    entry: changes of the errors ──► any left? ──► yes: wait; nothing of this time is written
           changes of the rows                └──► no:  a step, with all changes since the last one

While a view has errors, or is backfilled again, its rows are not the result of its query. The sink
then waits at the previous time. The step that ends the wait has all changes since then; they are read
again from the log, so they need not be kept in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tailgate.lake import errors
from tailgate.lake.catalog import Item, Sink
from tailgate.lake.errors import Gone, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Entry
from tailgate.lake.readers import reading
from tailgate.lake.readers.reading import net
from tailgate.lake.tables.weights import formed, total
from tailgate.lake.types import WEIGHT, Field, arrow_schema


@dataclass(frozen=True, slots=True)
class Step:
    """The progress to entry `n` and its time. `changes`: None if the relation did not change. `dropped`: the sink was dropped.

    `released`: rows of windows that ended until this time in ms have left because of their retention, if any. `single`: as of Header.
    """

    n: int
    time: int
    changes: pa.Table | None = None
    dropped: bool = False
    released: int | None = None
    single: int | None = None


class Reader:
    """An iterator over the steps after an entry.

    `errors`: the relation with the view's errors, 0 if there is none. `columns`: those that the sink knows.
    """

    def __init__(self, lake: Lake, sink: int, relation: int, errors: int, n: int, time: int, columns: tuple[Field, ...]) -> None:
        self._lake = lake
        self._sink = sink
        self._relation = relation
        self._schema = arrow_schema(columns, weight=True)
        self._errors_relation = errors
        self._filling = False  # whether the relation is being backfilled again
        self._errors: Counter[tuple[str, str]] = Counter()
        self._seen = n  # the last entry that was read
        self._shown = n  # the entry of the last step
        if errors:
            self._count_at(time)

    @property
    def seen(self) -> int:
        """Returns the last entry that was read."""
        return self._seen

    @property
    def error(self) -> TailgateError | None:
        """Returns one of the view's errors at the last entry that was read, or None."""
        for (sqlstate, message), count in self._errors.items():
            if count > 0:
                return errors.of(sqlstate, message)
        return None

    def steps(self) -> Iterator[Step]:
        """Yields the steps that the log has at present, up to the entry after which the sink writes more columns. Raises Gone.

        The next call continues after them.
        """
        for entry in self._lake.log.after(self._seen):
            header = entry.header
            if header.catalog is not None and any(self._is_wider(item) for item in header.catalog.put):
                return  # the worker starts again with these columns
            waited = self.error is not None or self._filling
            if self._errors_relation:
                self._count(net(self._lake, entry, self._errors_relation))
            self._seen = header.n
            dropped = header.catalog is not None and self._sink in header.catalog.drop
            if dropped:
                yield Step(header.n, header.time, dropped=True)
                return
            for item in header.catalog.put if header.catalog is not None else ():
                if item.id == self._relation:
                    self._filling = not item.ready
            if self.error is not None or self._filling:
                continue
            changes, released = self._since_shown(header.n) if waited else (self._with_repeated(entry), self._released(entry))
            self._shown = header.n
            yield Step(header.n, header.time, changes, released=released, single=None if waited else header.single)

    def _is_wider(self, item: Item) -> bool:
        """Returns whether an item is the sink with more columns of the relation than those here."""
        if item.id != self._sink or not isinstance(item, Sink):
            return False
        return item.known_columns.get(self._relation, 0) >= len(self._schema)  # the schema has the weight, too

    def _released(self, entry: Entry) -> int | None:
        return entry.header.released.get(str(self._relation))

    def _since_shown(self, n: int) -> tuple[pa.Table | None, int | None]:
        """Returns all changes since the last step, up to entry n; None if there are none; and `released` of the step."""
        tables, released = [], []
        for entry in self._lake.log.after(self._shown):
            if (changes := self._net(entry)) is not None:
                tables.append(changes)
            if (until := self._released(entry)) is not None:
                released.append(until)
            if entry.header.n == n:
                break
        return pa.concat_tables(tables) if tables else None, max(released, default=None)

    def _with_repeated(self, entry: Entry) -> pa.Table | None:
        """Returns the net changes of an entry, and the rows that it repeats, with the weight 0."""
        changes, repeated = self._net(entry), entry.repeated(self._relation)
        if repeated is None:
            return changes
        rows = formed(repeated, self._schema)
        return rows if changes is None else pa.concat_tables([changes, rows])

    def _net(self, entry: Entry) -> pa.Table | None:
        """Returns the net changes of an entry in the columns that the sink knows, or None if there are none."""
        changes = net(self._lake, entry, self._relation)
        if changes is None or changes.num_columns == len(self._schema):
            return None if changes is None else formed(changes, self._schema)
        rows = total([changes], self._schema)
        return rows if rows.num_rows else None

    def _count_at(self, time: int) -> None:
        """Counts the errors at the start.

        The log may reach further back than the tables. Then the errors are counted at the newest time, and
        the changes since the start are subtracted.
        """
        try:
            self._count(reading.snapshot(self._lake, self._errors_relation, time))
        except Gone:
            newest = self._lake.log.newest()
            assert newest is not None
            self._count(reading.snapshot(self._lake, self._errors_relation, newest.time))
            for entry in self._lake.log.after(self._seen, newest.n):
                self._count(net(self._lake, entry, self._errors_relation), -1)

    def _count(self, changes: pa.Table | None, sign: int = 1) -> None:
        if changes is None:
            return
        sqlstates, messages, weights = changes.column(0), changes.column(1), changes.column(WEIGHT)
        for sqlstate, message, weight in zip(sqlstates.to_pylist(), messages.to_pylist(), weights.to_pylist(), strict=True):
            self._errors[sqlstate, message] += sign * weight
        self._errors = Counter({error: count for error, count in self._errors.items() if count})
