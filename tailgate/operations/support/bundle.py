"""The collection of `tailgate bundle`: the facts for a bug report, without rows and secrets.

    versions.json   Tailgate, Python, packages, system       status.json    as `tailgate status --json`
    config.json     settings, passwords in URLs masked       catalog.json   kinds, names, columns, dependencies; no SQL
    log.jsonl       the newest entries, as `log show`        folders.json   files and bytes of each folder of the lake on this machine

SQL texts are left out, because their literals may be values of rows. With `--logs`, the ends of the files in `logs` are added: they
contain no values of rows either, but may contain messages of brokers and registries.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.operations import log_entries, status
from tailgate.operations.labels import label
from tailgate.operations.settings import configuration

ENTRIES = 200  # of the log
LOG_BYTES = 1 << 20  # of the end of each file in `logs`


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command besides the data folder."""
    command.add_argument("--to", type=Path, required=True, metavar="FILE", help="the file to create, such as report.tar.gz")
    command.add_argument("--logs", action="store_true", help="add the ends of the log files")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Creates the file. Returns 0. Raises 22023 if it exists, or cannot be created. An incomplete file is removed."""
    lake = Lake.open(options.data, options.work_dir)
    secrets_dir = [] if options.secrets_dir is None else ["--secrets-dir", str(options.secrets_dir)]
    values = configuration.parse(parser, ["up", "--data", str(options.data), *secrets_dir], os.environ).values
    try:
        file = options.to.open("xb")
    except FileExistsError:
        raise InvalidParameterValue(f'file "{options.to}" already exists', hint="Choose another name, or remove the file.") from None
    except OSError as error:
        raise InvalidParameterValue(f'file "{options.to}" cannot be created: {error.strerror}') from None
    try:
        with file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, data in contents(lake, values, logs=options.logs):
                member = tarfile.TarInfo(f"tailgate-bundle/{name}")
                member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
                archive.addfile(member, io.BytesIO(data))
    except BaseException:
        options.to.unlink()
        raise
    print(options.to)
    return 0


def contents(lake: Lake, values: list[configuration.Value], *, logs: bool) -> Iterator[tuple[str, bytes]]:
    """Yields the names and contents of the files."""
    yield "versions.json", _json(_versions())
    yield "status.json", _json(status.report(lake))
    yield "config.json", _json([{"name": value.name, "value": value.shown, "origin": value.origin} for value in values])
    yield "catalog.json", _json(_catalog(lake.catalog()))
    entries = [log_entries.entry(lake, each["n"]) for each in log_entries.newest(lake, ENTRIES)]
    yield "log.jsonl", b"".join(json.dumps(each).encode() + b"\n" for each in entries)
    folder = Path(lake.local.location(""))
    yield "folders.json", _json({path.name: _size(path) for path in sorted(folder.iterdir()) if path.is_dir()})
    for path in sorted((folder / "logs").glob("*.log")) if logs else ():
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - LOG_BYTES))
            yield f"logs/{path.name}", log.read(LOG_BYTES)


def _versions() -> dict[str, Any]:
    packages = sorted(metadata.distributions(), key=lambda package: str(package.name).lower())
    return {
        "python": sys.version,
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": {str(package.name): package.version for package in packages},
    }


def _catalog(catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {
            "id": item.id,
            "kind": item.kind,
            "name": label(catalog, item),
            "ready": item.ready,
            "columns": {column.name: str(column.type) for column in item.columns},
            "depends": list(item.depends),
        }
        for item in catalog.items.values()
    ]


def _size(folder: Path) -> dict[str, int]:
    files = total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except OSError:  # the engine has removed it meanwhile
                continue
            files += 1
    return {"files": files, "bytes": total}


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=1, default=str).encode()
