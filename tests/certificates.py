"""Certificates for tests: an authority and the certificates that it signs, for 127.0.0.1, in PEM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    certificate: str
    key: str


class Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tests")
        self.certificate = _pem(self._signed("tests", self._key, ca=True))

    def pair(self, name: str = "127.0.0.1") -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
        return Pair(_pem(self._signed(name, key, ca=False)), private)

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        builder = x509.CertificateBuilder(self._name, _name(name), key.public_key(), x509.random_serial_number(), now - DAY, now + DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
        if not ca:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(form.Encoding.PEM).decode()
