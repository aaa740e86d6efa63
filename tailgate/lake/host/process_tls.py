"""TLS between the processes of a lake that other machines reach.

    server: certificate and key of this run ──► its announcement in the lake has address, token and certificate
    client: reads the announcement ──► TLS that accepts exactly this certificate ──► sends the token

The readers of the lake can reach its processes. Nobody else can, and no machine needs files for this. A process that listens on loopback
announces no certificate, and its clients use no TLS.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache

from tailgate.lake.errors import ObjectInUse, TailgateError
from tailgate.lake.host import ports

HANDSHAKE_S = 5.0
CONTEXTS_MAX = 64  # of clients: one per announced process
LOOPBACK = "127.0.0.1:0"  # where a process listens that other machines do not reach
VALID = datetime(2000, 1, 1, tzinfo=timezone.utc), datetime(9999, 1, 1, tzinfo=timezone.utc)  # clocks differ; the process ends it


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of a process, in PEM, and the context in which it serves."""

    pem: str
    context: ssl.SSLContext


def split(address: str) -> tuple[str, int]:
    """Returns the host and the port of an address.

    >>> split("[::1]:7000"), split("10.0.0.7:7000")
    (('::1', 7000), ('10.0.0.7', 7000))
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def joined(host: str, port: int) -> str:
    """Returns the address of a host and a port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def cannot_listen(address: str, error: OSError) -> TailgateError:
    """Returns the error that a process cannot listen on an address."""
    detail = ports.taken(*split(address)) if error.errno == errno.EADDRINUSE else error.strerror
    return ObjectInUse(f"control cannot listen on {address}", detail=detail, hint="Choose another address: --control-listen.")


def create() -> Certificate:
    """Returns a new certificate, whose key exists in this process only."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tailgate")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), *VALID)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.NamedTemporaryFile() as file:  # mode 0600; the library reads files only
        file.write(pem.encode() + private)
        file.flush()
        context.load_cert_chain(file.name)
    return Certificate(pem, context)


@lru_cache(CONTEXTS_MAX)
def _trusting(pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the certificate itself is known
    context.load_verify_locations(cadata=pem)
    return context


def trusting(pem: str | None) -> ssl.SSLContext | None:
    """Returns the context of a client that accepts exactly this certificate; None for a process that serves without TLS."""
    return None if pem is None else _trusting(pem)


def connect(address: str, pem: str | None, timeout_s: float) -> socket.socket:
    """Connects to an announced process. Raises OSError."""
    connection = socket.create_connection(split(address), timeout_s)
    context = trusting(pem)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection)
    except OSError:
        connection.close()
        raise


def http_connection(address: str, pem: str | None, timeout_s: float) -> http.client.HTTPConnection:
    """Returns a connection for requests to an announced process. It connects with the first request."""
    context = trusting(pem)
    if context is None:
        return http.client.HTTPConnection(*split(address), timeout=timeout_s)
    return http.client.HTTPSConnection(*split(address), timeout=timeout_s, context=context)
