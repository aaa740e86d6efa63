"""The options of the HTTP API's process."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from tailgate.gateway.security.tls import Files
from tailgate.lake.errors import InvalidParameterValue
from tailgate.lake.host.process_tls import split

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
        """Returns the options of a command line. `address`: HOST:PORT. Raises 22023 for one that is not safe."""
        tls = _files(arguments.tls_cert, arguments.tls_key, arguments.tls_ca)
        host, port = split(address)
        if host not in LOOPBACK and tls is None and not arguments.insecure:
            raise InvalidParameterValue(
                f"the address {address} would let any machine in, without TLS",
                hint="Listen on 127.0.0.1, give --tls-cert and --tls-key, or --insecure where something else guards the port.",
            )
        return Options(host, port, gateway, tls, arguments.insecure)


def _files(certificate: Path | None, key: Path | None, authority: Path | None) -> Files | None:
    """Returns the files of TLS, or None without any. Raises 22023 if one is missing."""
    if certificate is not None and key is not None:
        return Files(certificate, key, authority)
    if certificate is not None or key is not None or authority is not None:
        raise InvalidParameterValue("--tls-cert and --tls-key belong together, and --tls-ca needs them")
    return None
