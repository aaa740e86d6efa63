"""The command `tailgate ksqldb`, and the options of `tailgate up` for it. Imports the server only when it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from tailgate.gateway.ksqldb.server.options import Options
from tailgate.gateway.security.tls import Files
from tailgate.operations.settings.addresses import address, reachable_address

LISTEN, GATEWAY = "127.0.0.1:8088", "127.0.0.1:6875"


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of `tailgate ksqldb`."""
    add = command.add_argument
    add("--listen", type=address, default=LISTEN, metavar="HOST:PORT", help=f"where clients of ksqlDB connect ({LISTEN})")
    add("--gateway", type=reachable_address, default=GATEWAY, metavar="HOST:PORT", help=f"the gateway, on this machine ({GATEWAY})")
    add("--tls-cert", type=Path, metavar="FILE", help="the server's certificate (PEM), followed by its authorities'")
    add("--tls-key", type=Path, metavar="FILE", help="its private key (PEM), with mode 0600")
    add("--tls-ca", type=Path, metavar="FILE", help="accept only clients with a certificate of these authorities (PEM)")
    add("--insecure", action="store_true", help="allow --listen beyond loopback without TLS and passwords")


def checked_arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the arguments of `tailgate ksqldb` from those of `tailgate up`, without addresses. Raises 22023 as `Options.of`."""
    if options.ksqldb is None:
        return ()
    at = Options.of(options, options.ksqldb, GATEWAY)
    return (*_tls_arguments(at.tls), *("--insecure",) * at.insecure)


def _tls_arguments(files: Files | None) -> tuple[str, ...]:
    if files is None:
        return ()
    paths = {"--tls-cert": files.certificate, "--tls-key": files.key, "--tls-ca": files.authority}
    return tuple(word for name, path in paths.items() if path is not None for word in (name, str(path.resolve())))


def run(arguments: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code."""
    from tailgate.gateway.ksqldb.server.main import run

    return run(Options.of(arguments, arguments.listen, arguments.gateway))
