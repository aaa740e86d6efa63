"""The options of commands for the endpoints over HTTP."""

from __future__ import annotations

import argparse

from tailgate.operations.settings.addresses import address
from tailgate.operations.settings.quantities import Positive, Quantity


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options."""
    served = "serve the endpoints of CREATE ENDPOINT here (HTTPS with --tls-cert)"
    command.add_argument("--http", type=address, metavar="HOST:PORT", help=served)
    command.add_argument(
        "--http-origin", action="append", default=[], metavar="ORIGIN", help="a site whose pages may read responses (CORS); may be repeated"
    )
    command.add_argument("--http-rate", type=Positive(), metavar="N", help="limit of requests per second of one role to one gateway (5000)")
    streams = "limit of streams of events of one role from one gateway (1000)"
    command.add_argument("--http-streams", type=Quantity(1, 4_900), metavar="N", help=streams)
    command.add_argument("--http-log", action="store_true", help="log each request")


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the options as arguments for a child gateway."""
    words: tuple[str, ...] = ()
    if options.http is not None:
        words += ("--http", options.http)
    words += tuple(word for origin in options.http_origin for word in ("--http-origin", origin))
    if options.http_rate is not None:
        words += ("--http-rate", str(options.http_rate))
    if options.http_streams is not None:
        words += ("--http-streams", str(options.http_streams))
    return (*words, *("--http-log",) * bool(options.http_log))
