"""The option --data of commands: the folder of a lake."""

from __future__ import annotations

import argparse
from pathlib import Path

from tailgate.lake.host.ports import DATA


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the option, with its default."""
    parser.add_argument("--data", type=folder, default=Path(DATA), help=f"the data folder, the lake (./{DATA})")


def folder(text: str) -> Path:
    """Returns the path of a data folder. Raises 0A000 for the URL of an object store."""
    from tailgate.lake.errors import FeatureNotSupported

    if "://" in text:
        raise FeatureNotSupported(f'a lake in "{text}" is not supported', hint="The lake is a folder: --data FOLDER.")
    return Path(text)
