"""Commits to Delta tables: fencing, durability, and rollback of commits that a power loss damaged.

    fencing     every commit carries its engine's epoch as a transaction, and fails unless it follows the version that was read
    durability  a round syncs the files of its commits before it lists their versions (`lake.tables.checkpoints`)
    recovery    after a power loss each table returns to its version in the newest listed checkpoint; the log has the rest

A table is named by its folder in the store. delta-rs does not sync its files. Its commits are atomic for other processes, but a power loss
may truncate or remove any file of a commit that was not synced.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import ColumnProperties, CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError
from pyarrow import parquet
from pyarrow.dataset import ParquetFileFormat

from tailgate.lake.errors import Replaced
from tailgate.lake.host import disk
from tailgate.lake.store import Store
from tailgate.lake.tables import vectors
from tailgate.lake.tables.moments import contains_dates

T = TypeVar("T")

LOG = "_delta_log"
ROWS = "rows"  # the folder of the data files of a table with deletion vectors (`lake.tables.large`)
VECTORS = "deletionVectors"  # the feature of Delta's protocol
ADD = ("path", "size", "modificationTime", "dataChange", "stats", "deletionVector")  # parts of an action that later commits repeat
EPOCH = "tailgate.epoch"  # application id of the transaction that carries the epoch of the committing engine

# No column mapping, and deletion vectors only for large tables (`lake.tables.large`): all readers support the rest.
# `lake.writer.maintenance` removes logs and old files according to tables/checkpoints; these durations are for other programs that
# maintain the table.
CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}

PARQUET = ParquetFileFormat()
READ_THREADS = 8  # files that are read at once: in a bucket, a file takes 60 ms or more to arrive

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_COMMIT = re.compile(r"/([0-9]{20})\.json$")
_CHECKPOINT = re.compile(r"/([0-9]{20})\.checkpoint\..*parquet$")
_VERSIONED = re.compile(r"/([0-9]{20})\.[^/]*$")


class Size(NamedTuple):
    """The size of a data file."""

    rows: int
    bytes: int


def table(store: Store, name: str, version: int | None = None) -> DeltaTable:
    """Opens a table at a version, by default the newest."""
    return DeltaTable(store.location(name), version=version, storage_options=dict(store.options))


def create(store: Store, name: str, schema: pa.Schema, title: str, **options: Any) -> DeltaTable:
    """Creates an empty table with a title, or opens an existing one. `options`: of `DeltaTable.create`."""

    def action() -> DeltaTable:
        return DeltaTable.create(store.location(name), schema, mode="ignore", name=title, storage_options=dict(store.options), **options)

    return disk.operation("commit", Path(store.location(name)), action)


def file_names(table: DeltaTable) -> list[str]:
    """Returns the names of the data files of a table's version, without the table's folder."""
    return [_file_name(uri) for uri in table.file_uris()]


def _file_name(uri: str) -> str:
    folder, _, file = uri.rpartition("/")
    return f"{ROWS}/{file}" if folder.rpartition("/")[2] == ROWS else file


def has_vectors(table: DeltaTable) -> bool:
    """Returns whether a table may have deletion vectors."""
    return VECTORS in (table.protocol().reader_features or ())


def data_files(table: DeltaTable) -> dict[str, Size]:
    """Returns the sizes of the data files of a table's version, by the name of the file. Deleted rows count, too."""
    actions = pa.table(table.get_add_actions(flatten=True))
    names, rows, sizes = (actions[column].to_pylist() for column in ("path", "num_records", "size_bytes"))
    return {_file_name(name): Size(*size) for name, *size in zip(names, rows, sizes, strict=True)}


def row_count(table: DeltaTable) -> int:
    """Returns the number of rows in the data files of a table's version, of deleted ones too."""
    return sum(file.rows for file in data_files(table).values())


def live_rows(table: DeltaTable) -> dict[str, np.ndarray]:
    """Returns for each row of the files with deletion vectors whether it is not deleted, by the name of the file."""
    if not has_vectors(table):
        return {}
    rows = {name: size.rows for name, size in data_files(table).items()}
    result: dict[str, np.ndarray] = {}
    for batch in table.deletion_vectors():
        for uri, selection in zip(*(pa.array(column) for column in batch.columns), strict=True):
            file, live = _file_name(uri.as_py()), selection.values.to_numpy(zero_copy_only=False)
            result[file] = np.concatenate([live, np.ones(rows[file] - len(live), bool)])
    return result


def rows(store: Store, name: str, table: DeltaTable) -> pa.Table:
    """Returns the rows of a table's version. Columns that a file does not have are NULL.

    `DeltaTable.to_pyarrow_table` uses the statistics of the files, and fails on dates before year 1 or after 9999.
    """
    schema, live = pa.schema(table.schema().to_arrow()), live_rows(table)

    def read(file: str) -> pa.Table:
        content = read_file(store, name, file, schema)
        return content.filter(pa.array(live[file])) if file in live else content

    files = file_names(table)
    if len(files) < 2:
        return read(files[0]) if files else schema.empty_table()
    with ThreadPoolExecutor(min(len(files), READ_THREADS), thread_name_prefix="read") as threads:
        return pa.concat_tables(threads.map(read, files))


def read_file(store: Store, name: str, file: str, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    """Returns the rows of a data file, also those that are deleted. Columns that the file does not have are NULL."""
    return PARQUET.make_fragment(store.get(f"{name}/{file}")).to_table(schema=schema, columns=columns)


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """Returns the properties of new files.

    Dates have no statistics: delta-rs fails for those that chrono lacks, such as infinity. If lists or structs contain dates, no
    column of the table has statistics, because delta-rs has no names for columns inside others.
    """
    none = ColumnProperties(statistics_enabled="NONE")
    dates = [field for field in schema if contains_dates(field.type)]
    nested = any(pa.types.is_nested(field.type) for field in dates)
    return WriterProperties(
        compression="ZSTD",
        compression_level=1,
        default_column_properties=none if nested else None,
        column_properties={field.name: none for field in dates} if dates and not nested else None,
    )


def commit(epoch: int, application: str | None = None, n: int = 0) -> CommitProperties:
    """Returns the properties of a commit by the engine of an epoch.

    `application` and `n` record up to which entry a table holds its relation (W5). A commit is never
    retried on top of another commit, because its input would be out of date.
    """
    return CommitProperties(app_transactions=transactions(epoch, application, n), max_commit_retries=0)


def transactions(epoch: int, application: str | None = None, n: int = 0) -> list[Transaction]:
    """Returns the transactions of such a commit."""
    return [*([] if application is None else [Transaction(application, n)]), Transaction(EPOCH, epoch)]


def check_epoch(table: DeltaTable, epoch: int) -> int:
    """Returns the epoch of the newest commit to the table, 0 for none. Raises `Replaced` if it is later than `epoch`."""
    newest = table.transaction_version(EPOCH) or 0
    if newest > epoch:
        raise Replaced("another engine writes the tables of this lake")
    return newest


def committing(table: DeltaTable, action: Callable[[], T]) -> T:
    """Runs an action that commits, as a file operation in which tests can inject failures."""
    return disk.operation("commit", Path(table.table_uri), action)


# ---- contents of commits -----------------------------------------------------------------------------------------------------


def is_table(store: Store, name: str) -> bool:
    return bool(commits(log_files(store, name)))


def log_files(store: Store, name: str) -> list[str]:
    """Returns the names of the objects of a table's log; an empty list without a table."""
    return [f"{name}/{LOG}/{file}" for file in store.names(f"{name}/{LOG}")]


def commits(files: Iterable[str]) -> list[int]:
    """Returns the versions whose commits are in a table's log, oldest first. `files`: of `log_files`."""
    return _versions(_COMMIT, files)


def delta_checkpoints(files: Iterable[str]) -> list[int]:
    """Returns the versions that have a Delta checkpoint, oldest first. `files`: of `log_files`."""
    return _versions(_CHECKPOINT, files)


def versioned(files: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields those of a table's `log_files` that belong to a version, with that version."""
    for file in files:
        if match := _VERSIONED.search(file):
            yield int(match[1]), file


def _versions(pattern: re.Pattern[str], names: Iterable[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(pattern.search, names) if match)


def _commit_name(name: str, version: int) -> str:
    return f"{name}/{LOG}/{version:020}.json"


def _commit(store: Store, name: str, version: int) -> Iterator[dict[str, Any]]:
    """Yields the actions of a commit, each a dictionary with its kind as the key. Raises ValueError if it is truncated."""
    yield from map(json.loads, filter(None, store.get(_commit_name(name, version)).to_pybytes().splitlines()))


def written_by(store: Store, name: str, after: int, upto: int) -> Iterator[str]:
    """Yields the objects that commits (after, upto] wrote, and the folders that contain them. A store that syncs nothing reads nothing."""
    if upto > after:
        yield from _written(store, name, range(after + 1, upto + 1))


def _written(store: Store, name: str, versions: Iterable[int]) -> Iterator[str]:
    names = [name, f"{name}/{LOG}", f"{name}/{ROWS}", name.rpartition("/")[0]]
    for version in versions:
        names += [_commit_name(name, version), *(f"{name}/{file}" for file in file_names_of(changed_files(store, name, version)[0]))]
    yield from filter(store.exists, names)  # objects that a later commit removed may be deleted already


def everything(store: Store, name: str) -> Iterator[str]:
    """Yields the objects of the newest version of a table, and the folders that contain them; nothing if the table does not exist."""
    files = log_files(store, name)
    if versions := commits(files):
        yield from sorted({*files, *_written(store, name, versions)})


# The protocol's term for a data file with its deletion vector: their names. Several data files may share a file with vectors.
LogicalFile = tuple[str, str | None]


def changed_files(store: Store, name: str, version: int) -> tuple[set[LogicalFile], set[LogicalFile]]:
    """Returns the files that the commit of a version added to the table, and those that it removed."""
    actions = list(_commit(store, name, version))
    added, removed = (_files(action[kind] for action in actions if kind in action) for kind in ("add", "remove"))
    return added, removed


def _files(actions: Iterable[Mapping[str, Any]]) -> set[LogicalFile]:
    return {(unquote(action["path"]), vectors.file_name(action)) for action in actions}


def files_at(store: Store, name: str, table: DeltaTable) -> frozenset[LogicalFile]:
    """Returns the files of a table's version."""
    if has_vectors(table):
        return frozenset(_files(adds(store, name, table.version()).values()))
    return frozenset((file, None) for file in file_names(table))


def file_names_of(files: Iterable[LogicalFile]) -> set[str]:
    """Returns the names of files."""
    return {name for pair in files for name in pair if name is not None}


def adds(store: Store, name: str, version: int) -> dict[str, dict[str, Any]]:
    """Returns the actions that describe the data files of a version, by the name of the file."""
    files = log_files(store, name)
    base = max((v for v in delta_checkpoints(files) if v <= version), default=-1)
    result: dict[str, dict[str, Any]] = {}
    for other, file in versioned(files):
        if other == base and file.endswith(".parquet"):
            for add in parquet.read_table(pa.BufferReader(store.get(file)), columns=["add"])["add"].drop_null().to_pylist():
                result[unquote(add["path"])] = _kept(add)
    for other in range(base + 1, version + 1):
        actions = list(_commit(store, name, other))
        for action in actions:
            if "remove" in action:
                result.pop(unquote(action["remove"]["path"]), None)
        for action in actions:
            if "add" in action:
                result[unquote(action["add"]["path"])] = _kept(action["add"])
    return result


def _kept(add: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those parts of an action that later commits repeat. In a checkpoint others may follow, in another form than in commits."""
    return {name: add[name] for name in ADD if add.get(name) is not None} | {"partitionValues": {}}


def committed_number(store: Store, name: str, version: int, application: str) -> int | None:
    """Returns the number that the commit of a version has recorded for an application (`commit`), or None.

    `DeltaTable.transaction_version` reads all commits since Delta's checkpoint.
    """
    for action in _commit(store, name, version):
        if (transaction := action.get("txn")) is not None and transaction["appId"] == application:
            return int(transaction["version"])
    return None


# ---- commits without delta-rs, which writes no deletion vectors ---------------------------------------------------------------


def append(store: Store, name: str, table: DeltaTable, operation: str, of: list[Transaction], actions: list[dict[str, Any]]) -> None:
    """Commits actions on top of the open version of a table. Raises `CommitFailedError` if another process has committed."""
    version = table.version() + 1
    head = {"commitInfo": {"timestamp": now_ms(), "operation": operation, "operationParameters": {}, "engineInfo": "Tailgate"}}
    records = [head, *({"txn": {"appId": t.app_id, "version": t.version}} for t in of), *actions]
    content = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records).encode()

    def action() -> None:
        if not store.create(_commit_name(name, version), [content]):
            raise CommitFailedError(f"version {version} of {name} exists")
        table.update_incremental()
        if table.version() != version:
            raise CommitFailedError(f"{name} has a version after {version}")

    committing(table, action)


def permit_vectors(table: DeltaTable) -> list[dict[str, Any]]:
    """Returns the actions with which a table may have deletion vectors."""
    protocol, metadata = table.protocol(), table.metadata()
    readers, writers = set(protocol.reader_features or ()), set(protocol.writer_features or ("appendOnly", "invariants"))
    features = {"readerFeatures": sorted({*readers, VECTORS}), "writerFeatures": sorted({*writers, VECTORS})}
    description = {
        "id": str(metadata.id),
        "name": metadata.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": [],
        "createdTime": metadata.created_time,
        "configuration": {**metadata.configuration, "delta.enableDeletionVectors": "true"},
    }
    return [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}, {"metaData": description}]


def now_ms() -> int:
    return int(time.time() * 1000)


# ---- recovery ----------------------------------------------------------------------------------------------------------------


def roll_back(store: Store, name: str, version: int) -> None:
    """Makes a version the newest one. It must be durable; objects of later versions may be missing or truncated.

    Delta's own checkpoints may be truncated too, and are kept only if they are needed. A checkpoint that
    replaces removed commits is durable (`lake.writer.maintenance`).
    """
    base = _base(store, name, version)
    files = log_files(store, name)
    going = [file for other, file in versioned(files) if other > version or (other != base and not _COMMIT.search(file))]
    store.discard([*going, f"{name}/{LOG}/_last_checkpoint"])  # the last one is a hint that may be out of date and is not durable
    store.sync([f"{name}/{LOG}"])


def _base(store: Store, name: str, version: int) -> int:
    """Returns the version of the Delta checkpoint from which `version` can be read; -1 if all its commits are in the log."""
    files = log_files(store, name)
    versions = set(commits(files))
    for base in (-1, *delta_checkpoints(files)):
        if base <= version and versions.issuperset(range(base + 1, version + 1)) and _whole(store, files, base):
            return base
    raise DeltaError(f"version {version} of {name} cannot be read")


def _whole(store: Store, files: Iterable[str], checkpoint: int) -> bool:
    """Returns whether all objects of a Delta checkpoint are complete. The footer is the last part of a Parquet file."""
    try:
        for version, file in versioned(files):
            if version == checkpoint and file.endswith(".parquet"):
                parquet.read_metadata(pa.BufferReader(store.get(file)))
    except (OSError, pa.ArrowException):
        return False
    return True
