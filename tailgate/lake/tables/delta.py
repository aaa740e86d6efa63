"""Commits to Delta tables: fencing, durability, and rollback of commits that a power loss damaged.

    fencing     every commit carries its engine's epoch as a transaction, and fails unless it follows the version that was read
    durability  a round syncs the files of its commits before it lists their versions (`lake.tables.checkpoints`)
    recovery    after a power loss each table returns to its version in the newest listed checkpoint; the log has the rest

delta-rs does not sync its files. Its commits are atomic for other processes, but a power loss
may truncate or remove any file of a commit that was not synced.
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

from tailgate.lake.errors import Replaced
from tailgate.lake.host import files

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

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_COMMIT = re.compile(r"([0-9]{20})\.json$")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\..*parquet$")
_VERSIONED = re.compile(r"([0-9]{20})\.")


def commit(epoch: int, application: str | None = None, n: int = 0) -> CommitProperties:
    """Returns the properties of a commit by the engine of an epoch.

    `application` and `n` record up to which entry a table holds its relation (W5). A commit is never
    retried on top of another commit, because its input would be out of date.
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
    """Runs an action that commits, as a file operation in which tests can inject failures."""
    return files.operation("commit", Path(table.table_uri), action)


# ---- contents of commits -----------------------------------------------------------------------------------------------------


def is_table(path: Path) -> bool:
    return bool(commits(path))


def commits(path: Path) -> list[int]:
    """Returns the versions whose commits are in a table's log, oldest first; an empty list if there is no table."""
    try:
        return _versions(_COMMIT, os.listdir(path / LOG))
    except (FileNotFoundError, NotADirectoryError):
        return []


def delta_checkpoints(path: Path) -> list[int]:
    """Returns the versions that have a Delta checkpoint, oldest first."""
    return _versions(_CHECKPOINT, os.listdir(path / LOG))


def versioned(path: Path) -> Iterator[tuple[int, Path]]:
    """Yields each file of a table's log that belongs to a version, with that version."""
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
    """Returns the files that commits (after, upto] wrote, and the folders that contain them."""
    return _files(path, range(after + 1, upto + 1)) if upto > after else []


def _files(path: Path, versions: Iterable[int]) -> list[Path]:
    paths = [path, path / LOG, path.parent]
    for version in versions:
        paths += [_log_file(path, version), *(path / unquote(add["path"]) for add in _actions(path, version, "add"))]
    return [file for file in paths if file.exists()]  # files that a later commit removed may be deleted already


def all_files(path: Path) -> list[Path]:
    """Returns the files of the newest version of a table, and the folders that contain them."""
    log_files = [path / LOG / name for name in os.listdir(path / LOG)]
    return sorted({*log_files, *_files(path, commits(path))})


def removed_by(path: Path, after: int, upto: int) -> set[str]:
    """Returns the names of the data files that commits (after, upto] removed from the table."""
    return {unquote(action["path"]) for version in range(after + 1, upto + 1) for action in _actions(path, version, "remove")}


# ---- recovery ----------------------------------------------------------------------------------------------------------------


def roll_back(path: Path, version: int) -> None:
    """Makes a version the newest one. It must be durable; files of later versions may be missing or truncated.

    Delta's own checkpoints may be truncated too, and are kept only if they are needed. A checkpoint that
    replaces removed commits is durable (`lake.writer.maintenance`).
    """
    base = _base(path, version)
    for other, file in versioned(path):
        if other > version or (other != base and not _COMMIT.match(file.name)):
            files.discard(file)
    files.discard(path / LOG / "_last_checkpoint")  # a hint that may be out of date and is not durable
    files.sync_folder(path / LOG)


def _base(path: Path, version: int) -> int:
    """Returns the version of the Delta checkpoint from which `version` can be read; -1 if all its commits are in the log."""
    versions = set(commits(path))
    for base in (-1, *delta_checkpoints(path)):
        if base <= version and versions.issuperset(range(base + 1, version + 1)) and _whole(path, base):
            return base
    raise DeltaError(f"version {version} of the table in {path} cannot be read")


def _whole(path: Path, checkpoint: int) -> bool:
    """Returns whether all files of a Delta checkpoint are complete. The footer is the last part of a Parquet file."""
    try:
        for version, file in versioned(path):
            if version == checkpoint and file.suffix == ".parquet":
                parquet.read_metadata(file)
    except (OSError, pa.ArrowException):
        return False
    return True
