"""The commands `tailgate backup` and `tailgate restore`."""

from __future__ import annotations

import argparse
import contextlib
from datetime import datetime, timezone
from pathlib import Path

from tailgate.operations import data_folder
from tailgate.operations.settings.quantities import Quantity


def add_backup_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `tailgate backup`."""
    data_folder.add(parser)
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="the folder of the backups")
    count = Quantity(1, 10**15)
    parser.add_argument("--at", type=count, metavar="ENTRY", help="the entry of the log up to which to copy (the newest)")
    parser.add_argument("--keep", type=count, metavar="N", help="remove all but the N newest backups afterwards (all are kept)")


def add_restore_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `tailgate restore`."""
    parser.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER", help="the folder of the backups")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=data_folder.location, metavar="FOLDER|URL", help="the lake to create: a folder, or s3://bucket/prefix")
    data_folder.add_secrets(parser)
    what.add_argument("--list", action="store_true", help="print the backups instead, oldest first")
    parser.add_argument("--at", type=_time, metavar="TIME", help="the newest backup at or before this time, or of this name")


def backup(options: argparse.Namespace) -> int:
    """Makes a backup and prints its place."""
    from tailgate.lake.folder import Lake
    from tailgate.lake.readers.backups import back_up

    result = back_up(Lake.open(options.data, options.work_dir), options.to, options.keep, options.at)
    if result.created:
        print(f"{result.backup.path}: {result.files} files, {result.bytes_copied} bytes copied")
    else:
        print(f"{result.backup.path}: exists, and nothing has changed since")
    for removed in result.removed:
        print(f"{removed.path}: removed")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Creates a lake from a backup, or prints the names of all backups."""
    from tailgate.lake.readers import backups
    from tailgate.lake.writer import restored_state

    if options.list:
        for one in backups.backups(options.source):
            print(one.path.name)
        return 0
    restored = restored_state.restore(options.source, options.data, options.at)
    print(f"{options.data}: restored from {restored.path.name}")
    return 0


def _time(text: str) -> int:
    """Returns a time in ISO 8601 (UTC without an offset), or that of a backup's name, in ms since the epoch. Raises ValueError."""
    from tailgate.lake.readers.backups import time_of

    with contextlib.suppress(ValueError):
        return time_of(text)
    moment = datetime.fromisoformat(text.removesuffix("Z"))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
