"""Secrets: sealed with a key, opened only with this key; files below one folder."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from tailgate.lake.catalog import Catalog, Change, Secret
from tailgate.lake.catalog.codec import decode_settings, encode_settings
from tailgate.lake.catalog.formats import ConnectionSettings, FileReference, SecretReference
from tailgate.lake.catalog.secrets import File, Sealed, Vault, settings
from tailgate.lake.errors import InsufficientPrivilege, InvalidParameterValue, ObjectNotInPrerequisiteState


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
    path.chmod(0o600)
    return path


def test_a_secret_is_opened_by_its_key_alone(key: Path, tmp_path: Path) -> None:
    vault = Vault(key)
    token = vault.sealed("ünsaid", 7)
    assert "nsaid" not in token and vault.sealed("ünsaid", 7) != token
    assert Vault(key).opened((("password", Sealed(7, token)), ("username", "ann"))) == {"password": "ünsaid", "username": "ann"}
    with pytest.raises(ObjectNotInPrerequisiteState, match="another key"):
        vault.opened((("password", Sealed(8, token)),))  # sealed for another secret
    other = tmp_path / "other"
    other.write_bytes(base64.b64encode(os.urandom(32)))
    other.chmod(0o600)
    with pytest.raises(ObjectNotInPrerequisiteState, match="another key"):
        Vault(other).opened((("password", Sealed(7, token)),))
    with pytest.raises(ObjectNotInPrerequisiteState, match="secrets need a key"):
        Vault().opened((("password", Sealed(7, token)),))


def test_invalid_keys(key: Path) -> None:
    Vault(key).check()
    key.chmod(0o640)
    with pytest.raises(ObjectNotInPrerequisiteState, match="can be read by others"):
        Vault(key).check()
    key.chmod(0o600)
    for content in (b"short", base64.b64encode(b"x" * 31), b"*" * 44):
        key.write_bytes(content)
        with pytest.raises(InvalidParameterValue):
            Vault(key).check()
    with pytest.raises(InvalidParameterValue, match="No such file"):
        Vault(key.with_name("absent")).check()


def test_files_of_the_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "ca.pem").write_text("CA")
    (tmp_path / "outside").write_text("no")
    (folder / "link").symlink_to(tmp_path / "outside")
    vault = Vault(None, folder)
    assert vault.opened((("ca", File("deep/ca.pem")),)) == {"ca": "CA"}
    assert vault.file(str(folder / "deep" / "ca.pem")) == "CA"
    for path in ("../outside", "/etc/passwd", "link", "deep/../../outside", "", "."):
        with pytest.raises(InsufficientPrivilege):
            vault.file(path)
    with pytest.raises(InvalidParameterValue, match="cannot be read"):
        vault.file("absent.pem")
    with pytest.raises(ObjectNotInPrerequisiteState, match="--secrets-dir"):
        Vault().file("deep/ca.pem")


def test_settings_change_with_their_secrets() -> None:
    def catalog(token: str) -> Catalog:
        return Catalog().apply(Change(put=(Secret(20_000, "s", ciphertext=token),)))

    options: ConnectionSettings = {"password": SecretReference(20_000), "ca": FileReference("x"), "protocol": "SASL_SSL"}
    assert settings(options, catalog("a")) == (("ca", File("x")), ("password", Sealed(20_000, "a")), ("protocol", "SASL_SSL"))
    restored = decode_settings(json.loads(json.dumps(encode_settings(options))))
    assert settings(options, catalog("a")) == settings(restored, catalog("a")) != settings(options, catalog("b"))
