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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import ColumnProperties, CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, WriterProperties
from deltalake.exceptions import DeltaError
from pyarrow import parquet
from pyarrow.dataset import ParquetFileFormat

from tailgate.lake.errors import Replaced
from tailgate.lake.host import disk
from tailgate.lake.store import Store
from tailgate.lake.tables.moments import contains_dates

T = TypeVar("T")

LOG = "_delta_log"
EPOCH = "tailgate.epoch"  # application id of the transaction that carries the epoch of the committing engine

# No deletion vectors and no column mapping: both writers and all readers support the rest. `lake.writer.maintenance` removes logs and old
# files according to tables/checkpoints; these durations are for other programs that maintain the table.
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
    return [uri.rpartition("/")[2] for uri in table.file_uris()]


def rows(store: Store, name: str, table: DeltaTable) -> pa.Table:
    """Returns the rows of a table's version. Columns that a file does not have are NULL.

    `DeltaTable.to_pyarrow_table` uses the statistics of the files, and fails on dates before year 1 or after 9999.
    """
    schema = pa.schema(table.schema().to_arrow())

    def read(file: str) -> pa.Table:
        return PARQUET.make_fragment(store.get(f"{name}/{file}")).to_table(schema=schema)

    files = file_names(table)
    if len(files) < 2:
        return read(files[0]) if files else schema.empty_table()
    with ThreadPoolExecutor(min(len(files), READ_THREADS), thread_name_prefix="read") as threads:
        return pa.concat_tables(threads.map(read, files))


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
    transactions = [Transaction(EPOCH, epoch)]
    if application is not None:
        transactions.insert(0, Transaction(application, n))
    return CommitProperties(app_transactions=transactions, max_commit_retries=0)


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
    names = [name, f"{name}/{LOG}", name.rpartition("/")[0]]
    for version in versions:
        names += [_commit_name(name, version), *(f"{name}/{file}" for file in changed_files(store, name, version)[0])]
    yield from filter(store.exists, names)  # objects that a later commit removed may be deleted already


def everything(store: Store, name: str) -> Iterator[str]:
    """Yields the objects of the newest version of a table, and the folders that contain them; nothing if the table does not exist."""
    files = log_files(store, name)
    if versions := commits(files):
        yield from sorted({*files, *_written(store, name, versions)})


def changed_files(store: Store, name: str, version: int) -> tuple[set[str], set[str]]:
    """Returns the data files that the commit of a version added to the table, and those that it removed."""
    actions = list(_commit(store, name, version))
    added, removed = ({unquote(action[kind]["path"]) for action in actions if kind in action} for kind in ("add", "remove"))
    return added, removed


def committed_number(store: Store, name: str, version: int, application: str) -> int | None:
    """Returns the number that the commit of a version has recorded for an application (`commit`), or None.

    `DeltaTable.transaction_version` reads all commits since Delta's checkpoint.
    """
    for action in _commit(store, name, version):
        if (transaction := action.get("txn")) is not None and transaction["appId"] == application:
            return int(transaction["version"])
    return None


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
