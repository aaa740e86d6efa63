"""Secrets: texts that the catalog stores encrypted and that no client can read.

    CREATE SECRET ──► Vault.sealed ──► catalog, log, backups: ciphertext ──► Vault.opened: settings of a Kafka or registry client

Only processes with the key (`--secret-key-file`) can decrypt them: the engine and the sinks. The
cipher is AES-256-GCM with a new nonce for each encryption. The secret's id is authenticated too, so a
ciphertext cannot be moved to another secret.

A setting of a connection may also be a file (`ssl_ca_location`). It must be in the folder
`--secrets-dir`, so that users cannot read other files of the machine through error messages or by
connecting to their own server.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tailgate.lake.catalog import Catalog, Connection, Item, Secret
from tailgate.lake.catalog.formats import ConnectionSettings, FileReference, SecretReference
from tailgate.lake.errors import InsufficientPrivilege, InvalidParameterValue, ObjectNotInPrerequisiteState
from tailgate.lake.host import credentials

KEY_BYTES = 32  # AES-256
NONCE_BYTES = 12  # the nonce size that GCM is designed for: NIST SP 800-38D
FILE_BYTES_MAX = 1 << 20  # a certificate with its chain has some kB


@dataclass(frozen=True, slots=True)
class Sealed:
    """A secret's value as stored in the catalog. `token`: the ciphertext; encrypting the same value again gives another one."""

    id: int
    token: str


@dataclass(frozen=True, slots=True)
class File:
    """A setting whose value is the content of a file below --secrets-dir."""

    path: str


Setting: TypeAlias = str | Sealed | File
Settings: TypeAlias = tuple[tuple[str, Setting], ...]  # sorted by name


def settings(references: ConnectionSettings, catalog: Catalog) -> Settings:
    """Returns the settings of an item, with the ciphertexts of the secrets.

    Two results are equal as long as none of their secrets has been altered.
    """
    return tuple((name, _setting(value, catalog)) for name, value in sorted(references.items()))


def setting_of(secret: int, catalog: Catalog) -> Sealed:
    """Returns the ciphertext of a secret."""
    item = catalog[secret]
    assert isinstance(item, Secret)
    return Sealed(secret, item.ciphertext)


def _setting(value: str | SecretReference | FileReference, catalog: Catalog) -> Setting:
    match value:
        case SecretReference(id):
            return setting_of(id, catalog)
        case FileReference(path):
            return File(path)
        case _:
            return value


def without_secrets(references: ConnectionSettings) -> dict[str, str]:
    """Returns the settings that are texts: all of them if an item uses no secrets and no files."""
    return {name: value for name, value in references.items() if isinstance(value, str)}


def secrets_of(item: Item, catalog: Catalog) -> Iterator[Secret]:
    """Yields the secrets that an item or its connection depends on."""
    for id in item.depends:
        other = catalog[id]
        if isinstance(other, Secret):
            yield other
        elif isinstance(other, Connection):
            yield from secrets_of(other, catalog)


@dataclass(frozen=True, slots=True)
class Vault:
    """The encryption key and the folder of files for settings. Either may be missing until it is needed.

    `key_file`: contains 32 bytes in base64.
    """

    key_file: Path | None = None
    folder: Path | None = None
    _key: list[bytes] = field(default_factory=list, compare=False, repr=False)

    def check(self) -> None:
        """Raises 55000 or 22023 if a key file is set but does not hold a valid key."""
        if self.key_file is not None:
            self._read()

    def sealed(self, value: str, id: int) -> str:
        """Returns the encrypted value of the secret with this id, for the catalog. Raises 55000 without a key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        return base64.b64encode(nonce + AESGCM(self._read()).encrypt(nonce, value.encode(), _of(id))).decode()

    def opened(self, settings: Settings) -> dict[str, str]:
        """Returns settings as plain text. Raises 55000 without the key or with another key."""
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
                hint="Start with the key that encrypted it, or use ALTER SECRET.",
            ) from None

    def file(self, path: str) -> str:
        """Returns the text of a file in the secrets folder. Raises 42501 for files elsewhere, also if a link leads there."""
        if self.folder is None:
            raise ObjectNotInPrerequisiteState(
                "options that name files need --secrets-dir", hint="Start the engine and the sinks with --secrets-dir, or use a SECRET."
            )
        folder = self.folder.resolve()
        target = (folder / path).resolve()
        if folder not in target.parents:
            raise InsufficientPrivilege(f'file "{path}" is not below --secrets-dir')
        if (folder / credentials.FOLDER).resolve() in target.parents:
            raise InsufficientPrivilege(f'file "{path}" belongs to the credentials of buckets')
        try:
            with target.open("rb") as file:
                return file.read(FILE_BYTES_MAX).decode()
        except (OSError, UnicodeDecodeError) as e:
            reason = e.strerror if isinstance(e, OSError) else "it is not text"
            raise InvalidParameterValue(f'file "{path}" of --secrets-dir cannot be read: {reason}') from None

    def _read(self) -> bytes:
        """Returns the key, which is read once. Raises 55000 or 22023 without a valid key."""
        if self._key:
            return self._key[0]
        if self.key_file is None:
            raise ObjectNotInPrerequisiteState(
                "secrets need a key",
                hint="Create one (openssl rand -base64 32), and start the engine and the sinks with --secret-key-file.",
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
                f'the key file "{self.key_file}" does not hold {KEY_BYTES} bytes in base64', hint="Create one: openssl rand -base64 32."
            )
        self._key.append(key)
        return key


def _of(id: int) -> bytes:
    return f"secret {id}".encode()
