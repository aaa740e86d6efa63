"""The history of freshness lag and sizes: a row for each relation and step of STEP_S seconds, for 7 days. `tailgate watch` writes it.

    gateways: steps that have ended ──► merged ─┬► watch/freshness/<hour>           lags and sizes of the last hour: a JSON line per step
    engine: sizes of relations ─────────────────┴► watch/freshness/<hour>.parquet   the rows of an hour, in the order of relations

Only `tailgate watch` reads the distributions, after a restart. A step of several gateways has the lags of all. If no gateway knows the
lag of a relation, the step is unknown. A line that is not complete, which an earlier version may have left, is ignored. While `tailgate
watch` does not run, gateways keep the last minute.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailgate.lake.catalog import Catalog, Endpoint, Item, MaterializedView, Source, Table, View
from tailgate.lake.folder import Lake
from tailgate.lake.store import Store
from tailgate.lake.tables.table_sizes import TableSize
from tailgate.operations.sketch import STEP_S, Sketch
from tailgate.operations.watch.notifications import FOLDER

log = logging.getLogger("tailgate.watch")

HOUR_STEPS = 3600 // STEP_S
HOURS_MAX = 7 * 24
BYTES_MAX = 256 << 20  # of all hours; the oldest are removed first. 100 relations take about 30 MB
ROWS_MAX = 2_000_000  # that a reader gets, the newest ones: 33 relations for 7 days
STEPS_ROWS_MAX = 20_000  # that a reader of the next steps gets: an hour of 55 relations
SETTLE_S = 2.0  # after the end of a step, until all gateways have reported it
NAME = f"{FOLDER}/freshness"
PARQUET = ".parquet"
UNKNOWN = (None, None)  # the size of a relation that is not stored, or without an engine
GROUP_ROWS = 16_384  # of a row group: the steps of an hour of 45 relations

# `samples`: lags that were measured, once a second by each gateway. `unknown`: times when the lag was not known. `rows`, `bytes`: the size
# of a stored relation when the step was recorded, if it is known.
SCHEMA = pa.schema(
    [
        ("relation", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("samples", pa.int64()),
        ("unknown", pa.int64()),
        *((f"{figure}_ms", pa.int64()) for figure in ("p50", "p95", "p99", "max")),
        *((name, pa.int64()) for name in TableSize._fields),  # hours that earlier versions have written do not have them
    ]
)

Step: TypeAlias = dict[int, Sketch]  # by relation or endpoint: the lags or latencies in one step
Sizes: TypeAlias = Mapping[str, Sequence[int | None]]  # by the id of a relation as text, as JSON has it: the fields of a TableSize
Line: TypeAlias = tuple[int, Step, Sizes]  # a recorded step, with the sizes when it was recorded
Conditions: TypeAlias = list[tuple[str, str, Any]]  # on columns of the rows
Reported: TypeAlias = Sequence[Any]  # a gateway's row: relation, step, unknown, maximum, counts by bucket


def relations(catalog: Catalog) -> list[Item]:
    """Returns the relations that have a freshness lag."""
    return [item for item in catalog.visible if isinstance(item, Source | Table | View | MaterializedView)]


def recorded(catalog: Catalog) -> list[Item]:
    """Returns the relations whose freshness lag is recorded: those that have been complete."""
    return [item for item in relations(catalog) if item.ready]


def endpoints(catalog: Catalog) -> set[int]:
    """Returns the ids of the endpoints, whose latency is recorded."""
    return {item.id for item in catalog.each(Endpoint)}


class Recorder:
    """The writer of the history. `newest` is the last step that is recorded."""

    def __init__(self, lake: Lake, now_s: float) -> None:
        self._store = lake.store
        self._started = int(now_s) // STEP_S  # steps before it that no gateway reports are missing, later ones are unknown
        self.newest = max([self._started - HOUR_STEPS, *(step for step, _ in self.recent(0))])
        self._pending: dict[int, Step] = {}
        self._since: dict[int, int] | None = None  # by relation: the step in which it was first there
        self._hour, self._content, self._rows = 0, b"", SCHEMA.empty_table()  # the hour of the last step, its lines and rows
        self._complete = False  # the rows of the steps that earlier processes have recorded are written

    def reported(
        self,
        rows: Iterable[Reported],
        relations: Iterable[int],
        now_s: float,
        endpoints: Collection[int] = (),
        sizes: Sizes | None = None,
    ) -> list[tuple[int, Step]]:
        """Takes what gateways have reported since the last call. Returns the steps that are now recorded, with all `relations`.

        A step in which nothing was reported is unknown, but not those before a relation was there.
        The latency of `endpoints`, which gateways report in the same form, is recorded for objectives. Readers of the history do not
        see it. An endpoint without requests in a step has none. `sizes`: the present ones, which the newest step gets.
        Raises OSError if the steps cannot be written; they are then recorded later.
        """
        if not self._complete:
            self._write_missing_rows()
        merged: dict[int, Step] = {}
        for id, step, missing, maximum, counts in rows:
            if step > self.newest:
                by_relation = merged.setdefault(step, {})
                sketch = Sketch({int(bucket): count for bucket, count in counts.items()}, maximum, missing)
                by_relation.setdefault(id, Sketch()).merge(sketch)
        self._pending |= merged
        last = int((now_s - SETTLE_S) // STEP_S) - 1  # the newest step that has settled
        steps: list[tuple[int, Step]] = []
        before, first = ({}, self._started - 1) if self._since is None else (self._since, int(now_s // STEP_S))
        since = self._since = {id: before.get(id, first) for id in relations}
        for step in range(max(self.newest, last - HOUR_STEPS) + 1, last + 1):
            if step not in self._pending and step < self._started:
                continue
            sketches = self._pending.pop(step, {})
            unknown = {id: Sketch(missing=STEP_S) for id, start in since.items() if step > start}
            of = unknown | {id: sketch for id, sketch in sketches.items() if id in since}
            of |= {id: sketch for id, sketch in sketches.items() if id in endpoints}
            steps.append((step, of))
        present = {str(id): size for id in since if (size := (sizes or {}).get(str(id))) is not None}
        lines = [(step, of, present if step == last else {}) for step, of in steps]
        for hour, group in groupby(lines, lambda line: line[0] // HOUR_STEPS):
            self._append(hour, list(group))
        self._pending = {step: of for step, of in self._pending.items() if step > self.newest}
        return steps

    def recent(self, since: int) -> list[tuple[int, Step]]:
        """Returns the recorded steps of the last hour that has one, those later than `since`."""
        hours = self._store.numbers(NAME)
        return [(step, of) for step, of, _ in _lines(_content(self._store, hours[-1])) if step > since] if hours else []

    def _write_missing_rows(self) -> None:
        """Writes the rows of the steps that a killed process has recorded without them."""
        for hour in self._store.numbers(NAME):
            self._hour, self._content = hour, _content(self._store, hour)
            self._put_rows(_table(_lines(self._content)))
        self._close_hours(self._hour)
        self._complete = True

    def _append(self, hour: int, steps: Sequence[Line]) -> None:
        """Writes steps of one hour, with two requests to the store."""
        if hour != self._hour:
            self._close_hours(hour)
            self._hour, self._content, self._rows = hour, b"", SCHEMA.empty_table()
        content = b"\n".join([self._content, *map(_encoded, steps)])
        self._store.put(f"{NAME}/{hour}", content)
        self._content = content
        self._put_rows(pa.concat_tables([self._rows, _table(steps)]))
        self.newest = steps[-1][0]

    def _put_rows(self, rows: pa.Table) -> None:
        """Writes the rows of the hour. A relation's are together, so a reader of one decodes few of them."""
        sink = pa.BufferOutputStream()
        ordered = rows.sort_by([("relation", "ascending"), ("at", "ascending")])
        pq.write_table(ordered, sink, compression="zstd", row_group_size=GROUP_ROWS)
        self._store.put(f"{NAME}/{self._hour}{PARQUET}", sink.getvalue().to_pybytes())
        self._rows = rows

    def _close_hours(self, hour: int) -> None:
        """Removes the distributions of the hours before `hour`, and the rows of the oldest hours beyond the limits."""
        self._store.discard([f"{NAME}/{number}" for number in self._store.numbers(NAME) if number < hour])
        size = 0
        for place, name in enumerate(hours(self._store)):
            size += self._store.size(name)
            if place >= HOURS_MAX or size > BYTES_MAX:
                self._store.discard([name])


def read(lake: Lake, relations: Collection[int] | None = None, since: datetime | None = None) -> pa.Table:
    """Returns the history: the newest rows, at most about ROWS_MAX. `relations`, `since`: of these relations, from this time on.

    Damaged hours are left out, and logged.
    """
    conditions: Conditions = []
    if relations is not None:
        conditions.append(("relation", "in", list(relations)))
    if since is not None:
        conditions.append(("at", ">=", since))
    tables: list[pa.Table] = []
    for name in [] if relations is not None and not relations else hours(lake.store):
        if sum(table.num_rows for table in tables) >= ROWS_MAX or (since is not None and _end(name) <= since.timestamp()):
            break
        if (rows := _read(lake.store, name, conditions)) is not None:
            tables.append(rows)
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def read_next(lake: Lake, after: int) -> pa.Table:
    """Returns the rows of the next steps later than `after`, in ms since the epoch: whole steps, at most about STEPS_ROWS_MAX rows.

    Damaged hours are left out, and logged.
    """
    moment = datetime.fromtimestamp(after / 1000, timezone.utc)
    for name in reversed(hours(lake.store)):
        if _end(name) > moment.timestamp():
            rows = _read(lake.store, name, [("at", ">", moment)])
            if rows is not None and rows.num_rows:
                times = rows["at"].sort()
                return rows.filter(pc.less_equal(rows["at"], times[min(rows.num_rows, STEPS_ROWS_MAX) - 1]))
    return SCHEMA.empty_table()


def _read(store: Store, name: str, conditions: Conditions) -> pa.Table | None:
    """Returns the rows of an hour, or None if they have just been removed, or are damaged."""
    try:
        content = pa.BufferReader(store.get(name))
    except FileNotFoundError:
        return None
    try:
        return pq.read_table(content, filters=conditions or None, schema=SCHEMA)
    except (pa.ArrowException, OSError) as error:
        log.warning("the rows of %s cannot be read: %s", name, error)
        return None


def hours(store: Store) -> list[str]:
    """Returns the names of the files with the rows of hours, the newest first."""
    numbers = (name.removesuffix(PARQUET) for name in store.names(NAME) if name.endswith(PARQUET))
    return [f"{NAME}/{hour}{PARQUET}" for hour in sorted(map(int, numbers), reverse=True)]


def _end(name: str) -> int:
    """Returns the end of the hour of a file, in seconds since the epoch."""
    return (int(name.removeprefix(f"{NAME}/").removesuffix(PARQUET)) + 1) * HOUR_STEPS * STEP_S


def _content(store: Store, hour: int) -> bytes:
    """Returns the lines of an hour that has not ended; none if there are none."""
    try:
        return bytes(store.get(f"{NAME}/{hour}"))
    except FileNotFoundError:
        return b""


def _encoded(line: Line) -> bytes:
    step, of, sizes = line
    rows = [[id, sketch.missing, sketch.max, sketch.counts] for id, sketch in of.items()]
    return json.dumps({"step": step, "rows": rows, "sizes": sizes}, separators=(",", ":")).encode()


def _lines(content: bytes) -> list[Line]:
    """Returns the steps of an hour that has not ended. A step that is in it twice has the later values."""
    steps: dict[int, Line] = {}
    for line in content.split(b"\n"):
        try:
            data = json.loads(line)
            of = {id: Sketch({int(b): n for b, n in counts.items()}, top, missing) for id, missing, top, counts in data["rows"]}
            step = int(data["step"])
            steps[step] = step, of, data.get("sizes", {})  # an earlier version has written no sizes
        except (ValueError, KeyError, TypeError):
            continue  # not complete
    return [steps[step] for step in sorted(steps)]


def _table(steps: Iterable[Line]) -> pa.Table:
    rows = [(*_row(id, step, sketch), *sizes.get(str(id), UNKNOWN)) for step, of, sizes in steps for id, sketch in of.items()]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.Table.from_arrays([pa.array(c, field.type) for c, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _row(id: int, step: int, sketch: Sketch) -> tuple[int | None, ...]:
    figures = [*sketch.quantiles((0.5, 0.95, 0.99)), sketch.max]
    times = step * STEP_S * 1_000_000
    return (id, times, sum(sketch.counts.values()), sketch.missing, *(None if f is None else round(f) for f in figures))
