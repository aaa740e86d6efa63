"""TLS: the server's certificate and key, from files that can be replaced while the gateway runs.

    SSLRequest ──► Tls.current ──► [files changed?] ──► a new context for this and later connections; others keep theirs

If new files cannot be loaded, this is logged once and the previous certificate stays in use.
"""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from tailgate.lake.errors import SystemError_

log = logging.getLogger("tailgate.gateway")


@dataclass(frozen=True, slots=True)
class Files:
    """The PEM files of the server.

    `authority`: the certificates of the authority that signs client certificates. If set, every client must present one.
    """

    certificate: Path
    key: Path
    authority: Path | None = None

    def state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Returns the modification time, size and inode of each file, to detect a replacement."""
        return tuple(_state(path) for path in (self.certificate, self.key, self.authority) if path is not None)


@dataclass(frozen=True, slots=True)
class Identity:
    """The server's certificate in use. `end_point`: its hash for SCRAM's channel binding, or None if RFC 5929 defines none."""

    context: ssl.SSLContext
    end_point: bytes | None


class Tls:
    """The TLS configuration of a gateway. Loads the files again when they change."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._state = files.state()
        self._identity = load(files)

    def current(self) -> Identity:
        """Returns the certificate to use for a new connection."""
        state = self._files.state()
        if state != self._state:
            self._state = state
            try:
                self._identity = load(self._files)
                log.info("the TLS certificate was read again from %s", self._files.certificate)
            except Exception as error:  # noqa: BLE001  # logged; the previous certificate stays in use
                log.error("the TLS certificate could not be read again: %s", error)
        return self._identity


def load(files: Files) -> Identity:
    """Loads the files. Raises 58000 with the file's name if one of them cannot be used."""
    _check_private(files.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        der = ssl.PEM_cert_to_DER_cert(_first_certificate(files.certificate.read_text()))
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise SystemError_(f'could not load certificate "{files.certificate}" with key "{files.key}": {error}') from error
    if files.authority is not None:
        try:
            context.load_verify_locations(files.authority)
        except OSError as error:
            raise SystemError_(f'could not load root certificate file "{files.authority}": {error}') from error
        context.verify_mode = ssl.CERT_REQUIRED
    return Identity(context, end_point(der))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _check_private(key: Path) -> None:
    try:
        status = key.stat()
    except OSError as error:
        raise SystemError_(f'could not access private key file "{key}": {error.strerror}') from error
    if status.st_mode & (0o037 if status.st_uid == 0 and os.geteuid() != 0 else 0o077):
        raise SystemError_(
            f'private key file "{key}" has group or world access',
            detail="Permissions should be u=rw (0600) or less, or u=rw,g=r (0640) or less if it is owned by root.",
        )


def _no_password() -> str:
    raise ValueError("the private key needs a passphrase, which is not supported")


def _first_certificate(pem: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return pem[pem.index(begin) : pem.index(end) + len(end)]


# --- tls-server-end-point -------------------------------------------------------------------------------------------------

# DER of a signature algorithm's object identifier → its hash. RFC 5929 replaces MD5 and SHA-1 by SHA-256.
_RSA, _ECDSA = bytes.fromhex("2a864886f70d0101"), bytes.fromhex("2a8648ce3d0403")
_HASHES = {
    _RSA + b"\x04": "sha256", _RSA + b"\x05": "sha256", _RSA + b"\x0e": "sha224", _RSA + b"\x0b": "sha256", _RSA + b"\x0c": "sha384",
    _RSA + b"\x0d": "sha512", bytes.fromhex("2a8648ce3d0401"): "sha256", _ECDSA + b"\x01": "sha224", _ECDSA + b"\x02": "sha256",
    _ECDSA + b"\x03": "sha384", _ECDSA + b"\x04": "sha512",
}  # fmt: skip


def end_point(der: bytes) -> bytes | None:
    """Returns the certificate's hash, by the hash function of its signature, or None if that has none, such as Ed25519.

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER, … }, … }
    """
    begin, _ = _inside(der, 0)
    _, after_body = _inside(der, begin)
    algorithm, _ = _inside(der, after_body)
    at, end = _inside(der, algorithm)
    name = _HASHES.get(der[at:end])
    return None if name is None else hashlib.new(name, der).digest()


def _inside(der: bytes, at: int) -> tuple[int, int]:
    """Returns the beginning and the end of the content of the DER value at `at`."""
    length, begin = der[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, begin = int.from_bytes(der[begin : begin + size], "big"), begin + size
    return begin, begin + length
