"""Credentials of buckets in files below --secrets-dir: all requests use them, also after they have been replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import InsufficientPrivilege, InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.lake.host import credentials
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.tables import checkpoints
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from testing.s3 import S3
from tests.lake.life import BAG
from tests.lake.relations import add, changes, snapshot


@pytest.fixture
def secrets_dir(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields a folder with the access key `first`. The environment has none."""
    folder = tmp_path / "secrets"
    (folder / credentials.FOLDER).mkdir(parents=True)
    (folder / credentials.FOLDER / credentials.SECRET).write_text(s3.environment[credentials.SECRET])
    replace(folder, "first")
    for name in credentials.NAMES:
        monkeypatch.delenv(name, raising=False)
    yield folder
    credentials.use(None)


def replace(folder: Path, key: str) -> None:
    (folder / credentials.FOLDER / credentials.KEY).write_text(f"{key}\n")


def test_all_requests_use_the_files(bucket: BucketStore, secrets_dir: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of delta-rs use them, too. A replaced key is used by the next round, and by readers whose old key is refused."""
    monkeypatch.setattr(credentials, "VALID_S", 0.0)
    credentials.use(secrets_dir)
    lake = Lake.create(bucket.location("files"))
    writer = open_epoch(lake)
    add(writer, BAG)
    follower = Follower(lake, writer.epoch)

    def keys() -> set[str]:
        """Returns the keys of the requests of a round and of a reader."""
        s3.requests()
        writer.append([(BAG.id, changes(BAG, [([1, "x"], 1)]))])
        follower.round()
        snapshot(Lake(lake.location), BAG)
        return {request.process for request in s3.request_log()}

    assert keys() == {"first"}
    reader = Lake(lake.location)
    before = checkpoints.listed(reader)
    replace(secrets_dir, "second")
    s3.set(refused="first")
    assert keys() == {"second"}
    assert checkpoints.listed(reader) == before, "the list is opened again"
    assert checkpoints.listed(reader)[-1].n > before[-1].n


def test_a_token_of_the_environment_is_not_used_with_a_key_of_the_files(
    bucket: BucketStore, secrets_dir: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(credentials.TOKEN, "of another key")
    credentials.use(secrets_dir)
    s3.set(refused="of another key")
    lake = Lake.create(bucket.location("token"))
    writer = open_epoch(lake)
    add(writer, BAG)
    writer.append([(BAG.id, changes(BAG, [([1, "x"], 1)]))])
    Follower(lake, writer.epoch).round()
    assert snapshot(Lake(lake.location), BAG)


def test_incomplete_files(secrets_dir: Path) -> None:
    (secrets_dir / credentials.FOLDER / credentials.SECRET).unlink()
    with pytest.raises(InvalidParameterValue, match="cannot be read: No such file") as error:
        credentials.use(secrets_dir)
    assert error.value.hint == "It needs the files AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."


def test_a_session_token(secrets_dir: Path) -> None:
    credentials.use(secrets_dir)
    assert credentials.current()["token"] is None
    (secrets_dir / credentials.FOLDER / credentials.TOKEN).write_text("token")
    assert credentials.current()["token"] == "token"
    assert credentials.read()[credentials.TOKEN] == "token"


def test_a_folder_without_credentials(tmp_path: Path) -> None:
    credentials.use(tmp_path)
    assert credentials.read() == {}


def test_statements_cannot_name_the_files(secrets_dir: Path) -> None:
    with pytest.raises(InsufficientPrivilege, match="belongs to the credentials of buckets"):
        Vault(folder=secrets_dir).file(f"{credentials.FOLDER}/{credentials.KEY}")
