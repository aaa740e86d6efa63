"""The commands that read or copy a lake: `tailgate verify`, `backup`, `restore` and `log`.

They work beside running processes. Each command imports the modules that it needs when it runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Adds the commands to `commands`, what add_subparsers returned: argparse has no public type for it."""
    verify = command(commands, "verify", "check that a lake is complete and that its tables equal its log", _verify)
    data_option(verify)

    backup = command(commands, "backup", "copy a lake, also while it is in use, into a folder of backups", _backup)
    data_option(backup)
    backup.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="the folder of the backups")

    restore = command(commands, "restore", "create a data folder from a backup", _restore)
    restore.add_argument("--from", dest="source", type=Path, required=True, metavar="FOLDER", help="the folder of the backups")
    what = restore.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, metavar="FOLDER", help="the data folder to create")
    what.add_argument("--list", action="store_true", help="print the backups instead, oldest first")
    restore.add_argument("--at", type=_time, metavar="TIME", help="the newest backup at or before this time, or of this name")

    words = commands.add_parser("log", help="entries of a lake's log, without rows", description="entries of a lake's log, without rows")
    words = words.add_subparsers(required=True, metavar="COMMAND")
    ls = command(words, "ls", "the newest entries, one a line", _log_ls)
    ls.add_argument("--count", type=int, default=20, metavar="N", help="number of entries (20)")
    show = command(words, "show", "one entry: offsets, changed relations, change of the catalog", _log_show)
    show.add_argument("n", type=int, help="number of the entry")
    for log in (ls, show):
        data_option(log)
        log.add_argument("--json", action="store_true", help="a JSON object per entry")


def command(commands: Any, name: str, help: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """Adds a command and returns its parser. `run` is called with the options and returns the exit code."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run, command=name)
    return parser


def data_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --data, the folder of the lake."""
    parser.add_argument("--data", type=Path, default=Path("tailgate-data"), help="the data folder, the lake (./tailgate-data)")


def _time(text: str) -> int:
    """Returns a time in ISO 8601 (UTC without an offset), or that of a backup's name, in ms since the epoch. Raises ValueError."""
    from tailgate.lake.readers.backups import time_of

    with contextlib.suppress(ValueError):
        return time_of(text)
    moment = datetime.fromisoformat(text.removesuffix("Z"))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _verify(options: argparse.Namespace) -> int:
    from tailgate.lake.folder import Lake
    from tailgate.lake.readers.verification import findings

    problems = 0
    for finding in findings(Lake.open(options.data)):
        print(f"{finding.checked}: {finding.problem or 'ok'}", flush=True)
        problems += finding.problem is not None
    print(f"problems: {problems}")
    return 1 if problems else 0


def _backup(options: argparse.Namespace) -> int:
    from tailgate.lake.folder import Lake
    from tailgate.lake.readers.backups import back_up

    result = back_up(Lake.open(options.data), options.to)
    if result.created:
        print(f"{result.backup.path}: {result.files} files, {result.bytes_copied} bytes copied")
    else:
        print(f"{result.backup.path}: exists, and nothing has changed since")
    return 0


def _restore(options: argparse.Namespace) -> int:
    from tailgate.lake.readers.backups import backups, restore

    if options.list:
        for backup in backups(options.source):
            print(backup.path.name)
        return 0
    backup = restore(options.source, options.data, options.at)
    print(f"{options.data}: restored from {backup.path.name}")
    return 0


def _log_ls(options: argparse.Namespace) -> int:
    from tailgate.lake.folder import Lake
    from tailgate.operations.log_entries import newest

    for entry in newest(Lake.open(options.data), options.count):
        line = "{n:>8}  {time}  {kind:<7}  epoch {epoch}  relations {relations}  rows {rows}".format(**entry)
        print(json.dumps(entry) if options.json else line)
    return 0


def _log_show(options: argparse.Namespace) -> int:
    from tailgate.lake.folder import Lake
    from tailgate.operations.log_entries import entry

    shown = entry(Lake.open(options.data), options.n)
    if options.json:
        print(json.dumps(shown))
    else:
        for name, value in shown.items():
            print(f"{name + ':':<15} {json.dumps(value) if isinstance(value, dict) else value}")
    return 0
