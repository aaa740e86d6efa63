"""Large tables with a key: a round adds its rows in a small file, and marks the rows that they replace as deleted (ADR 0032).

    new rows                      ──► a new data file
    keys of the rows that left    ──► their places, by an index in memory ──► a new deletion vector for each file with such rows
    both                          ──► one commit, as of a merge (W5)
    small or half deleted files   ──► between rounds, `fold` writes their remaining rows to new files

A merge rewrites each file that has a changed row, and random keys are in all files: 10,000,000 rows in a second of CPU and more. Here
the commit of 5,000 random keys takes some 40 ms. The index has 12 bytes for each row. It is built from the key columns, file by file,
when rows of the table first leave after a start. The indexes of all tables together have a limit. Files that are not in them are
read whenever rows leave the table.

The data files are in the folder `rows` of the table, so that earlier versions of this software, which ignore deletion vectors, do not find
them and fail.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, Transaction
from pyarrow import parquet

from tailgate.lake.host import crash
from tailgate.lake.store import Store
from tailgate.lake.tables import delta, vectors
from tailgate.lake.tables.delta_forms import to_delta
from tailgate.lake.tables.merging import FILE_BYTES, Inconsistent, check_added
from tailgate.lake.tables.stored_relations import Stored, table_name
from tailgate.lake.tables.weights import flattened, negated, negative, positive
from tailgate.lake.types import WEIGHT

if TYPE_CHECKING:
    import duckdb

log = logging.getLogger("tailgate.tables")

ROWS_MIN = 500_000  # from which on a table has deletion vectors; it keeps them when it becomes smaller
SMALL_BYTES = FILE_BYTES // 2  # of the remaining rows of a file that is folded
SMALL_FILES = 16
FOLD_BYTES = 2 * FILE_BYTES  # of the remaining rows of all files that are folded at once
INDEX_BYTES = 256 << 20  # of the indexes of all tables, unless `limit_index` sets another limit
NEW_BYTES = 2 * FILE_BYTES  # of the rows of a new file in memory: a larger file could only be folded when it has few remaining rows

Action = dict[str, Any]


def is_large(table: DeltaTable) -> bool:
    """Returns whether a table has deletion vectors, or so many rows that it should."""
    return delta.has_vectors(table) or delta.row_count(table) >= ROWS_MIN


def limit_index(size: int) -> None:
    """Sets how many bytes the indexes of all tables of this process, the engine, may have."""
    global INDEX_BYTES
    INDEX_BYTES = size


@dataclass(frozen=True, slots=True)
class Index:
    """The keys of a data file: their hashes in ascending order, and the row number of each."""

    hashes: np.ndarray
    rows: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.rows.nbytes)


@dataclass(slots=True)
class DataFile:
    """A data file.

    - `add`: the action of Delta's log that describes the file.
    - `live`: by row number, whether the row is not deleted. `remaining`: the number of these rows.
    - `index`: of its keys, if it is in memory.
    """

    add: Action
    live: np.ndarray
    remaining: int
    index: Index | None = None

    @property
    def path(self) -> str:
        return str(self.add["path"])

    @property
    def remaining_bytes(self) -> int:
        return int(self.add["size"]) * self.remaining // max(len(self.live), 1)


class LargeTable:
    """A table with deletion vectors, for its only writer. After an exception other than `Inconsistent` it must be opened again.

    `index_bytes`: the memory of its index.
    """

    def __init__(self, store: Store, stored: Stored, table: DeltaTable, epoch: int, room: Callable[[], int]) -> None:
        """Adds deletion vectors to the table if it has none. The methods commit through `table`.

        `room` returns how many bytes its index may still grow.
        """
        self._store, self._stored, self._table, self._name = store, stored, table, table_name(stored.id)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._room, self._is_reported = room, False
        self.index_bytes = 0
        if not delta.has_vectors(table):
            self._convert(epoch)
        live, sizes = delta.live_rows(table), delta.data_files(table)
        self._files: dict[str, DataFile] = {}
        for path, add in delta.adds(store, self._name, table.version()).items():
            self._add(add, live.get(path, np.ones(sizes[path].rows, bool)))

    def apply(self, stored: Stored, changes: pa.Table, transactions: list[Transaction]) -> None:
        """Applies net changes in one commit."""
        self._stored = stored
        came, went = positive(changes), negative(changes)
        check_added(came)
        check_added(negated(went))
        places = self._located(to_delta(went.select(stored.key_names)))
        actions, marked = [], []
        for path, rows in places.items():
            file = self._files[path]
            actions.append({"remove": _remove(file.add, changes_data=True)})
            file.live[rows] = False
            file.remaining -= len(rows)
            if file.remaining:
                marked.append(file)
            else:
                self._forget(file)
        if marked:
            new = vectors.vectors(np.flatnonzero(~file.live) for file in marked)
            self._store.put(f"{self._name}/{new.name}", new.content)
            for file, descriptor in zip(marked, new.descriptors, strict=True):
                statistics = {**json.loads(file.add.get("stats") or "{}"), "numRecords": len(file.live), "tightBounds": False}
                file.add = {**file.add, "dataChange": True, "stats": json.dumps(statistics), "deletionVector": descriptor}
                actions.append({"add": file.add})
        if came.num_rows:
            rows = to_delta(came.drop_columns([WEIGHT])).cast(stored.table)
            actions += [{"add": file.add} for file in self._written(rows, 1 + rows.nbytes // NEW_BYTES, changes_data=True)]
        crash.point("large.files")
        delta.append(self._store, self._name, self._table, "MERGE", transactions, actions)

    def clear(self, transactions: list[Transaction]) -> None:
        """Deletes all rows."""
        actions = [{"remove": _remove(file.add, changes_data=True)} for file in self._files.values()]
        self._files, self.index_bytes = {}, 0
        delta.append(self._store, self._name, self._table, "DELETE", transactions, actions)

    def fold(self, transactions: list[Transaction]) -> None:
        """Writes the remaining rows of small and half deleted files to new files, if there are enough of them."""
        small = sorted((f for f in self._files.values() if f.remaining_bytes < SMALL_BYTES), key=lambda file: file.remaining_bytes)
        if len(small) < SMALL_FILES:
            return
        sums = np.cumsum([file.remaining_bytes for file in small])
        folded = small[: max(2, int(np.searchsorted(sums, FOLD_BYTES)))]
        rows = pa.concat_tables(self._remaining(file) for file in folded)
        for file in folded:
            self._forget(file)
        written = self._written(rows, 1 + int(sums[len(folded) - 1]) // FILE_BYTES, changes_data=False)
        actions = [*({"remove": _remove(file.add, changes_data=False)} for file in folded), *({"add": file.add} for file in written)]
        crash.point("large.folded")
        delta.append(self._store, self._name, self._table, "OPTIMIZE", transactions, actions)

    # ---- the index -------------------------------------------------------------------------------------------------------------

    def _located(self, keys: pa.Table) -> dict[str, np.ndarray]:
        """Returns the row numbers of keys, by the path of their file. Raises `Inconsistent` if a key has no row."""
        if not keys.num_rows:
            return {}
        hashes = self._hashes(keys)
        order = np.argsort(hashes)
        ordered = hashes[order]
        paths, parts = list(self._files), []
        for n, file in enumerate(self._files.values()):
            index = file.index or self._indexed(file, self._keys(file.path))
            first, last = (np.searchsorted(index.hashes, ordered, side) for side in ("left", "right"))
            counts = last - first
            if counts.any():
                offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
                rows = index.rows[np.repeat(first, counts) + offsets]
                candidates = np.stack([np.repeat(order, counts), np.full(len(rows), n), rows], axis=1)
                parts.append(candidates[file.live[rows]])
        places = np.concatenate([np.empty((0, 3), np.int64), *parts])  # key, file, row number
        several = np.bincount(places[:, 0], minlength=keys.num_rows)[places[:, 0]] > 1  # two keys have the same hash
        if several.any():
            same = [_equal(self._keys(paths[file]).slice(row, 1), keys.slice(key, 1)) for key, file, row in places[several].tolist()]
            places = np.concatenate([places[~several], places[several][np.array(same, bool)]])
        is_unique = bool((np.bincount(places[:, 0], minlength=keys.num_rows) == 1).all())
        if not is_unique or len(np.unique(places[:, 1] << 32 | places[:, 2])) < len(places):
            raise Inconsistent("a key that has no row, or several rows, is removed, or a row is removed twice")
        return {paths[n]: places[places[:, 1] == n, 2] for n in np.unique(places[:, 1])}

    def _indexed(self, file: DataFile, keys: pa.Table) -> Index:
        """Returns the index of the keys of a file, and keeps it in memory if there is room for it."""
        hashes = self._hashes(keys)
        order = np.argsort(hashes)
        index = Index(hashes[order], order.astype(np.uint32))
        if index.nbytes <= self._room():
            file.index = index
            self.index_bytes += index.nbytes
        elif not self._is_reported:
            self._is_reported = True
            log.warning("relation %s: its index exceeds the limit --index-memory; each round reads its keys", self._stored.name)
        return index

    def _hashes(self, keys: pa.Table) -> np.ndarray:
        """Returns a hash of each key. Equal keys have equal hashes in this process."""
        import duckdb  # only here: it takes 0.2 s of CPU of an engine's start

        if self._connection is None:
            self._connection = duckdb.connect(config={"threads": 1})
        names = [f"k{i}" for i in range(keys.num_columns)]
        relation = self._connection.from_arrow(keys.rename_columns(names)).project(f"hash({', '.join(names)})")
        return np.asarray(relation.to_arrow_table().column(0).to_numpy())

    def _keys(self, path: str) -> pa.Table:
        """Returns the keys of a file, of deleted rows too."""
        return delta.read_file(self._store, self._name, path, self._schema, self._stored.key_names)

    # ---- files -----------------------------------------------------------------------------------------------------------------

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())

    def _remaining(self, file: DataFile) -> pa.Table:
        return delta.read_file(self._store, self._name, file.path, self._schema).filter(pa.array(file.live))

    def _add(self, add: Action, live: np.ndarray) -> DataFile:
        file = self._files[str(add["path"])] = DataFile(add, live, int(live.sum()))
        return file

    def _forget(self, file: DataFile) -> None:
        del self._files[file.path]
        if file.index is not None:
            self.index_bytes -= file.index.nbytes

    def _written(self, rows: pa.Table, count: int, *, changes_data: bool) -> list[DataFile]:
        """Writes rows to so many data files, and adds these to the index."""
        limit = max(1, -(-rows.num_rows // count))
        return [self._written_file(rows.slice(at, limit), changes_data=changes_data) for at in range(0, rows.num_rows, limit)]

    def _written_file(self, rows: pa.Table, *, changes_data: bool) -> DataFile:
        sink = pa.BufferOutputStream()
        parquet.write_table(rows, sink, compression="zstd", compression_level=1)
        content = sink.getvalue().to_pybytes()
        path = f"{delta.ROWS}/part-{uuid.uuid4()}.parquet"
        self._store.put(f"{self._name}/{path}", content)
        add = {
            "path": path,
            "partitionValues": {},
            "size": len(content),
            "modificationTime": delta.now_ms(),
            "dataChange": changes_data,
            "stats": json.dumps({"numRecords": rows.num_rows, "tightBounds": True}),
        }
        file = self._add(add, np.ones(rows.num_rows, bool))
        self._indexed(file, rows.select(self._stored.key_names))
        return file

    def _convert(self, epoch: int) -> None:
        """Permits deletion vectors, and gives all files names of this engine in the folder `rows`.

        The old names stay for a while, and earlier versions of this software look in the table's folder for the last part of a name.
        """
        actions = delta.permit_vectors(self._table)
        for path, add in delta.adds(self._store, self._name, self._table.version()).items():
            moved = f"{delta.ROWS}/{epoch}-{path}"
            self._store.copy(f"{self._name}/{path}", f"{self._name}/{moved}")
            actions += [{"remove": _remove(add, changes_data=False)}, {"add": {**add, "path": moved, "dataChange": False}}]
        crash.point("large.converted")
        delta.append(self._store, self._name, self._table, "UPGRADE PROTOCOL", delta.transactions(epoch), actions)


def _equal(one: pa.Table, other: pa.Table) -> bool:
    """Returns whether the keys of two tables with one row are equal."""
    flat = flattened(pa.concat_tables([one, other.cast(one.schema)]))
    return bool(flat.group_by(flat.column_names).aggregate([]).num_rows == 1)


def _remove(add: Action, *, changes_data: bool) -> Action:
    """Returns the action that removes a file with its deletion vector."""
    vector = {"deletionVector": add["deletionVector"]} if "deletionVector" in add else {}
    return {
        "path": add["path"],
        "deletionTimestamp": delta.now_ms(),
        "dataChange": changes_data,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": add["size"],
        **vector,
    }
