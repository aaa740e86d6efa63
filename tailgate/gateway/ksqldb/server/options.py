"""The options of the HTTP API's process."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from tailgate.gateway.security.tls import Files
from tailgate.lake.errors import InvalidParameterValue

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Options:
    """The address to listen on, and the gateway as HOST:PORT. `insecure`: as of a gateway."""

    host: str
    port: int
    gateway: str
    tls: Files | None = None
    insecure: bool = False

    @staticmethod
    def of(arguments: argparse.Namespace, address: str, gateway: str) -> Options:
        """Returns the options of a command line. `address`: HOST:PORT. Raises 22023 for one that is invalid or not safe."""
        tls = Files(arguments.tls_cert, arguments.tls_key) if arguments.tls_cert is not None and arguments.tls_key is not None else None
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdigit():
            raise InvalidParameterValue(f"the address {address} is not HOST:PORT")
        if host not in LOOPBACK and tls is None and not arguments.insecure:
            raise InvalidParameterValue(
                f"the address {address} would let any machine in, without TLS",
                hint="Listen on 127.0.0.1, give --tls-cert and --tls-key, or --insecure where something else guards the port.",
            )
        return Options(host, int(port), gateway, tls, arguments.insecure)
