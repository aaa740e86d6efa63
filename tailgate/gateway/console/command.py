"""The option of commands for the console."""

from __future__ import annotations

import argparse

from tailgate.lake.host.process_tls import split
from tailgate.operations.settings.addresses import address


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the option."""
    served = "serve the console, a web page, here (HTTPS with --tls-cert)"
    command.add_argument("--console", type=address, metavar="HOST:PORT", help=served)


def address_of(options: argparse.Namespace) -> tuple[str, int] | None:
    """Returns the address of the console, or None without one."""
    if options.console is None:
        return None
    return split(options.console)


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the option as arguments for a child gateway."""
    return () if options.console is None else ("--console", options.console)
