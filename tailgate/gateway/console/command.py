"""The option of commands for the console."""

from __future__ import annotations

import argparse

from tailgate.lake.errors import InvalidParameterValue


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the option."""
    command.add_argument("--console", metavar="HOST:PORT", help="serve the console, a web page, here (HTTPS with --tls-cert)")


def address(options: argparse.Namespace) -> tuple[str, int] | None:
    """Returns the address of the console, or None without one. Raises 22023."""
    if options.console is None:
        return None
    host, _, port = options.console.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidParameterValue(f"--console {options.console} is not HOST:PORT")
    return host.strip("[]"), int(port)


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the option as arguments for a child gateway."""
    return () if options.console is None else ("--console", options.console)
