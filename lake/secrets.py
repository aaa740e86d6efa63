"""Secrets: texts that are kept encrypted in the catalog and shown to nobody.

    CREATE SECRET ──► Vault.sealed ──► catalog, log, backups: ciphertext ──► Vault.opened: what a client of Kafka or of a registry is given

Only processes that are told the key (`--secret-key-file`) can open them: the engine and the sinks. AES-256 in Galois counter mode, with
a nonce of its own for each sealing; the secret's id is authenticated too, so that no ciphertext can be put in another one's place.

A setting of a connection may also be a file (`ssl_ca_location`): only of the folder `--secrets-dir`, so that nobody reads the
machine's other files by an error message or a connection to a machine of their own.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from lake.catalog import SECRET, Catalog, Item
from lake.errors import InsufficientPrivilege, InvalidParameterValue, ObjectNotInPrerequisiteState

KEY_BYTES = 32  # AES-256
NONCE_BYTES = 12  # what Galois counter mode is made for: NIST SP 800-38D
FILE_BYTES_MAX = 1 << 20  # a certificate with all that signed it has some kB
SEALED = "sealed"  # option of a secret's item: the ciphertext


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret's value as the catalog has it; sealing the same again gives another `token`."""

    id: int
    token: str


@dataclass(frozen=True, slots=True)
class File:
    path: str


Setting: TypeAlias = str | Sealed | File
Settings: TypeAlias = tuple[tuple[str, Setting], ...]  # sorted by name


def settings(said: Mapping[str, Any], catalog: Catalog) -> Settings:
    """Of an item's option (text, {"secret": id} or {"file": path} by name): equal as long as no secret among them was altered."""
    return tuple((name, _setting(value, catalog)) for name, value in sorted(said.items()))


def _setting(value: Any, catalog: Catalog) -> Setting:
    if isinstance(value, str):
        return value
    if "file" in value:
        return File(value["file"])
    return Sealed(value["secret"], catalog[value["secret"]].options[SEALED])


def secrets_of(item: Item, catalog: Catalog) -> Iterator[Item]:
    """The secrets that an item names, or whose connection does."""
    for id in item.depends:
        other = catalog[id]
        if other.kind == SECRET:
            yield other
        elif other.kind == "connection":
            yield from secrets_of(other, catalog)


@dataclass(frozen=True, slots=True)
class Vault:
    """`key_file`: 32 bytes in base64; `folder`: of files that settings may name. Either may be missing until something needs it."""

    key_file: Path | None = None
    folder: Path | None = None
    _key: list[bytes] = field(default_factory=list, compare=False, repr=False)

    def check(self) -> None:
        """Raises 55000 or 22023 for a key that is named and is none."""
        if self.key_file is not None:
            self._read()

    def sealed(self, value: str, id: int) -> str:
        """The value of the secret with this id, for the catalog. Raises 55000 without a key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        return base64.b64encode(nonce + AESGCM(self._read()).encrypt(nonce, value.encode(), _of(id))).decode()

    def opened(self, settings: Settings) -> dict[str, str]:
        """What was said, in clear. Raises 55000 without the key, or with another one."""
        return {name: self._opened(value) for name, value in settings}

    def _opened(self, value: Setting) -> str:
        match value:
            case Sealed(id, token):
                return self._unsealed(id, token)
            case File(path):
                return self.file(path)
            case _:
                return value

    def _unsealed(self, id: int, token: str) -> str:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        data = base64.b64decode(token)
        try:
            return AESGCM(self._read()).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _of(id)).decode()
        except InvalidTag:
            raise ObjectNotInPrerequisiteState(
                "a secret was encrypted under another key than that of --secret-key-file",
                hint="Start with the key that it was made under, or ALTER SECRET.",
            ) from None

    def file(self, path: str) -> str:
        """The text of a file below the folder; 42501 for any other, also one that a link leads to."""
        if self.folder is None:
            raise ObjectNotInPrerequisiteState(
                "options that name files need --secrets-dir", hint="Start the engine and the sinks with --secrets-dir, or use a SECRET."
            )
        folder = self.folder.resolve()
        found = (folder / path).resolve()
        if folder not in found.parents:
            raise InsufficientPrivilege(f'file "{path}" is not below --secrets-dir')
        try:
            with found.open("rb") as file:
                return file.read(FILE_BYTES_MAX).decode()
        except (OSError, UnicodeDecodeError) as e:
            reason = e.strerror if isinstance(e, OSError) else "it is no text"
            raise InvalidParameterValue(f'file "{path}" of --secrets-dir cannot be read: {reason}') from None

    def _read(self) -> bytes:
        if self._key:
            return self._key[0]
        if self.key_file is None:
            raise ObjectNotInPrerequisiteState(
                "secrets need a key",
                hint="Make one (openssl rand -base64 32), and start the engine and the sinks with --secret-key-file.",
            )
        try:
            with self.key_file.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise ObjectNotInPrerequisiteState(
                        f'the key file "{self.key_file}" can be read by others', hint=f"chmod 600 {self.key_file}"
                    )
                key = base64.b64decode(file.read(FILE_BYTES_MAX).strip(), validate=True)
        except (OSError, binascii.Error) as e:
            raise InvalidParameterValue(f'the key file "{self.key_file}" cannot be read: {e}') from None
        if len(key) != KEY_BYTES:
            raise InvalidParameterValue(
                f'the key file "{self.key_file}" does not hold {KEY_BYTES} bytes in base64', hint="Make one: openssl rand -base64 32."
            )
        self._key.append(key)
        return key


def _of(id: int) -> bytes:
    return f"secret {id}".encode()
