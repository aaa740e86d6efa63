"""The options of `tailgate up` for Kafka Connect. Imports no server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tailgate.lake.errors import InvalidParameterValue

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """`plugins`: a folder with a folder for each plugin. `settings`: of the worker, in place of the default ones."""

    plugins: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options."""
    command.add_argument("--connect", metavar="URL|embedded", help="the Kafka Connect of ksqlDB's statements, or 'embedded' to start one")
    command.add_argument("--connect-plugins", type=Path, metavar="DIR", help="the embedded worker's plugins: a folder for each")
    command.add_argument(
        "--connect-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the embedded worker, as in worker.properties; may be repeated",
    )


def checked(options: argparse.Namespace) -> ConnectOptions:
    """Returns the options of an embedded worker. Raises 22023 if they do not fit together."""
    settings = dict(_setting(text) for text in options.connect_set)
    plugins: Path | None = options.connect_plugins
    if options.connect != EMBEDDED and (settings or plugins is not None):
        raise InvalidParameterValue("--connect-plugins and --connect-set need --connect embedded")
    if options.connect == EMBEDDED and not options.kafka and "bootstrap.servers" not in settings:
        raise InvalidParameterValue("--connect embedded needs --kafka")
    if plugins is not None and not plugins.is_dir():
        raise InvalidParameterValue(f"--connect-plugins {plugins} is not a folder")
    return ConnectOptions(None if plugins is None else plugins.resolve(), settings)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidParameterValue("--connect-set is not NAME=VALUE")  # the value may be a password
    return name.strip(), value
