"""The state of a lake that is restored from a backup of a folder into a bucket.

    files of the state ──► bucket ──► list state/uploaded/<n> of the backup's newest entry n ──► an entry names n

The next engine downloads these files, as those that an engine has uploaded (ADR 0025).
"""

from __future__ import annotations

from pathlib import Path

from tailgate.lake.folder import Lake
from tailgate.lake.log.state_files import folder_of
from tailgate.lake.log.uploaded_state import UPLOADED, name_of
from tailgate.lake.readers import backups
from tailgate.lake.readers.backups import Backup
from tailgate.lake.store import documents, locations
from tailgate.lake.writer.log_writer import open_epoch

KIND = "state"  # of the log entry


def restore(target: Path, data: Path | str, at: int | None = None) -> Backup:
    """Creates a lake from a backup as `backups.restore`, with its state."""
    backup = backups.restore(target, data, at)
    if locations.is_bucket(data) and (names := backups.state_files(backup.path)):
        _enter(Lake(data), names)
    return backup


def _enter(lake: Lake, names: list[str]) -> None:
    """Appends an entry that names the state of the newest entry as uploaded."""
    writer = open_epoch(lake)
    try:
        newest = writer.newest
        documents.write(lake.store, name_of(newest.n), {"folder": folder_of(newest), "state": newest.state, "files": names})
        writer.append(kind=KIND, extra={**newest.extra, UPLOADED: newest.n})
    finally:
        writer.close()
