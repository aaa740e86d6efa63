"""The options --data, --work-dir and --secrets-dir of commands: where a lake is, and the credentials of its bucket."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from tailgate.lake.host.ports import DATA

Location: TypeAlias = Path | str  # a folder, or the URL of a bucket and a prefix


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the options, with their defaults."""
    _add(parser, Path(DATA), f"the lake: a data folder (./{DATA}), or s3://bucket/prefix")


def _add(parser: argparse.ArgumentParser, default: Path | None, help: str) -> None:
    parser.add_argument("--data", type=location, default=default, metavar="FOLDER|URL", help=help)
    parser.add_argument(
        "--work-dir",
        type=Path,
        metavar="FOLDER",
        help="this machine's folder for state, logs and temporary files, if the lake is in a bucket (./tailgate-work)",
    )
    add_secrets(parser)


def add_secrets(parser: argparse.ArgumentParser) -> None:
    """Adds the option of the folder with the credentials of a bucket."""
    parser.add_argument(
        "--secrets-dir",
        type=Path,
        metavar="FOLDER",
        help="the only folder whose files statements may name; may have the credentials of a bucket",
    )


def add_for_demo(parser: argparse.ArgumentParser) -> None:
    """Adds the options, without a default."""
    _add(parser, None, "keep everything in this lake: a folder, or s3://bucket/prefix (otherwise a temporary folder)")


def local(options: argparse.Namespace) -> Path:
    """Returns the folder of this machine that the processes write: the lake, or the working folder of a lake in a bucket."""
    from tailgate.lake.folder import WORK_DIR

    return options.data if isinstance(options.data, Path) else options.work_dir or WORK_DIR


def shared(options: argparse.Namespace) -> tuple[Location, Path | None]:
    """Returns --data and --work-dir for an engine on a cluster, whose executors have other current folders.

    Raises 22023 for a lake in a bucket without a working folder: executors write the state there.
    """
    from tailgate.lake.errors import InvalidParameterValue

    if isinstance(options.data, Path):
        return options.data.resolve(), None
    if options.work_dir is None:
        raise InvalidParameterValue(
            f"an engine on a cluster needs a working folder for a lake in {options.data}",
            hint="Set --work-dir to a folder that all machines have under the same path.",
        )
    return options.data, options.work_dir.resolve()


def use_credentials(data: Location | None, secrets_dir: Path | None) -> None:
    """Uses the credentials of a bucket in --secrets-dir, if there are some. Raises 22023 if they are incomplete."""
    if isinstance(data, str):
        from tailgate.lake.host import credentials

        credentials.use(secrets_dir)


def location(text: str) -> Location:
    """Returns the location of a lake. Raises 0A000 for the URL of an object store that is not supported."""
    from tailgate.lake.errors import FeatureNotSupported
    from tailgate.lake.store import locations

    if locations.is_bucket(text):
        return text.rstrip("/")
    if "://" in text:
        raise FeatureNotSupported(f'a lake in "{text}" is not supported', hint="Use a folder, or a bucket: s3://bucket/prefix.")
    return Path(text)
