"""How the Delta tables are written: who may commit, what makes a commit durable, and how commits that were lost are taken back.

    fence      every commit carries the epoch of its engine as a transaction, and is made on top of the version that was read or fails
    durable    a round syncs the files of its commits before it lists their versions (`lake.checkpoints`)
    recovery   after a loss of power each table goes back to its version in the newest checkpoint of the list; the log has the rest

delta-rs does not sync what it writes. Its commits are atomic for processes that read them, but the loss of power may truncate or
remove any file of a commit that was not synced.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import DeltaError
from pyarrow import parquet

from lake import files
from lake.errors import Replaced

T = TypeVar("T")

LOG = "_delta_log"
EPOCH = "tailgate.epoch"  # the application id of the transaction that names the epoch of the engine that made a commit

# No deletion vectors and no column mapping: both writers and all readers know the rest. Logs and removed files are tended by
# `lake.tending` by the checkpoints listed in tables/checkpoints; the durations are for what others run on the table.
CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_COMMIT = re.compile(r"([0-9]{20})\.json$")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\..*parquet$")
_VERSIONED = re.compile(r"([0-9]{20})\.")


def commit(epoch: int, application: str | None = None, n: int = 0) -> CommitProperties:
    """Properties of a commit by the engine of an epoch. `application` and `n` (W5): up to which entry a table holds its relation.

    A commit is not tried again on top of another's: what it was computed from is no longer there.
    """
    transactions = [Transaction(EPOCH, epoch)]
    if application is not None:
        transactions.insert(0, Transaction(application, n))
    return CommitProperties(app_transactions=transactions, max_commit_retries=0)


def check_epoch(table: DeltaTable, epoch: int) -> None:
    """Raises `Replaced` if the engine of a later epoch has committed to the table."""
    if (table.transaction_version(EPOCH) or 0) > epoch:
        raise Replaced("another engine writes the tables of this lake")


def committing(table: DeltaTable, action: Callable[[], T]) -> T:
    """Makes a commit: an operation of files like any other, for tests."""
    return files.operation("commit", Path(table.table_uri), action)


# ---- what a commit consists of -----------------------------------------------------------------------------------------------


def is_table(path: Path) -> bool:
    return bool(commits(path))


def commits(path: Path) -> list[int]:
    """The versions whose commits are in a table's log, oldest first; none if there is no table."""
    try:
        return _versions(_COMMIT, os.listdir(path / LOG))
    except (FileNotFoundError, NotADirectoryError):
        return []


def delta_checkpoints(path: Path) -> list[int]:
    """The versions of which Delta has a checkpoint, oldest first."""
    return _versions(_CHECKPOINT, os.listdir(path / LOG))


def versioned(path: Path) -> Iterator[tuple[int, Path]]:
    """The files of a table's log that belong to a version, with the version."""
    for name in sorted(os.listdir(path / LOG)):
        if match := _VERSIONED.match(name):
            yield int(match[1]), path / LOG / name


def _versions(pattern: re.Pattern[str], names: Iterable[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(pattern.match, names) if match)


def _log_file(path: Path, version: int) -> Path:
    return path / LOG / f"{version:020}.json"


def _actions(path: Path, version: int, kind: str) -> Iterator[dict[str, Any]]:
    for line in _log_file(path, version).read_bytes().splitlines():
        if line and (action := json.loads(line).get(kind)) is not None:
            yield action


def files_of(path: Path, after: int, upto: int) -> list[Path]:
    """The files that commits (after, upto] wrote, and the folders with their names."""
    return _files(path, range(after + 1, upto + 1)) if upto > after else []


def _files(path: Path, versions: Iterable[int]) -> list[Path]:
    found = [path, path / LOG, path.parent]
    for version in versions:
        found += [_log_file(path, version), *(path / unquote(add["path"]) for add in _actions(path, version, "add"))]
    return [file for file in found if file.exists()]  # what a later commit took out may have been removed


def all_files(path: Path) -> list[Path]:
    """The files from which the newest version of a table is read, and the folders with their names."""
    log_files = [path / LOG / name for name in os.listdir(path / LOG)]
    return sorted({*log_files, *_files(path, commits(path))})


def removed_by(path: Path, after: int, upto: int) -> set[str]:
    """The names of the data files that commits (after, upto] removed from the table."""
    return {unquote(action["path"]) for version in range(after + 1, upto + 1) for action in _actions(path, version, "remove")}


# ---- recovery ----------------------------------------------------------------------------------------------------------------


def roll_back(path: Path, version: int) -> None:
    """Makes a version the newest one. It must be durable itself; of the later ones any file may be missing or truncated.

    Delta's own checkpoints may be truncated too, unless commits were removed because a checkpoint stands for them: then it is durable
    (`lake.tending`). So one is kept only if it is needed.
    """
    base = _base(path, version)
    for other, file in versioned(path):
        if other > version or (other != base and not _COMMIT.match(file.name)):
            files.discard(file)
    files.discard(path / LOG / "_last_checkpoint")  # only a hint, and not durable
    files.sync_folder(path / LOG)


def _base(path: Path, version: int) -> int:
    """The checkpoint of Delta's from which a version is to be read; -1 if that begins with the first commit."""
    there = set(commits(path))
    for base in (-1, *delta_checkpoints(path)):
        if base <= version and there.issuperset(range(base + 1, version + 1)) and _whole(path, base):
            return base
    raise DeltaError(f"version {version} of the table in {path} cannot be read")


def _whole(path: Path, checkpoint: int) -> bool:
    """Whether no file of a checkpoint of Delta's is truncated. A Parquet file ends with what tells where its parts are."""
    try:
        for version, file in versioned(path):
            if version == checkpoint and file.suffix == ".parquet":
                parquet.read_metadata(file)
    except (OSError, pa.ArrowException):
        return False
    return True
