"""Certificates for tests, made with openssl: an authority and the certificates that it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Authority:
    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.certificate, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        self._run("req", "-x509", *_new_key(self._key), "-out", self.certificate, "-days", "2", "-subj", f"/CN={name}")

    def sign(self, name: str, *, common_name: str = "localhost", hash: str = "sha256") -> tuple[Path, Path]:
        """Creates a certificate for localhost and 127.0.0.1. Returns its path and that of its key."""
        request, certificate, key = (self.folder / f"{name}.{ending}" for ending in ("csr", "pem", "key"))
        extensions = self.folder / f"{name}.cnf"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self._run("req", *_new_key(key), "-out", request, "-subj", f"/CN={common_name}")
        signer = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", f"-{hash}", "-extfile", extensions)
        self._run("x509", "-req", "-in", request, "-out", certificate, "-days", "2", *signer)
        return certificate, key

    def _run(self, *words: str | Path) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=30)


def _new_key(path: Path) -> tuple[str | Path, ...]:
    """Returns openssl's options for a new elliptic-curve key, which takes milliseconds."""
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path
