"""A new epoch takes over the unread entries of the inbox, wherever the previous one ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tailgate.lake.errors import IoError, Replaced, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.store import Store
from tailgate.lake.writer.inbox import UNCOMMITTED, Inbox, Record
from tailgate.lake.writer.log_writer import open_epoch
from tests.lake.relations import BOTH_STORES


class Crash(Exception):
    """The end of a process."""


def begun(lake: Lake, consumed: int = 0) -> Inbox:
    """Returns the inbox of a new epoch."""
    writer = open_epoch(Lake(lake.location), take_over=True)
    return Inbox(writer.lake, writer.epoch, consumed)


def write(inbox: Inbox, *values: bytes, channel: str = "$table/1") -> None:
    for value in values:
        inbox.write([Record(channel, None, value)])
        inbox.check()


def unread(inbox: Inbox) -> list[bytes]:
    return [bytes(record.value or b"") for record in inbox.read(inbox.consumed, inbox.newest)]


def crash_while_taking_over(lake: Lake, patch: pytest.MonkeyPatch, consumed: int = 0) -> None:
    def point(name: str) -> None:
        if name == "inbox.taken":
            raise Crash

    with patch.context() as patched:
        patched.setattr(crash, "point", point)
        with pytest.raises(Crash):
            begun(lake, consumed)


@BOTH_STORES
def test_unread_entries(lake: Lake) -> None:
    write(begun(lake), b"one", b"two", b"three")
    after = begun(lake, consumed=1)
    assert unread(after) == [b"two", b"three"]
    write(after, b"four")
    assert unread(begun(lake, consumed=2)) == [b"three", b"four"]
    assert lake.store.names("inbox") == ["3"]


@BOTH_STORES
def test_an_epoch_that_crashed_while_it_took_over(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write(begun(lake), b"one", b"two")
    for _ in range(2):
        crash_while_taking_over(lake, monkeypatch)
    lake.store.discard([f"inbox/{lake.store.numbers('inbox')[-1]}/2"])  # as if it had ended before this copy
    assert unread(begun(lake)) == [b"one", b"two"]


@BOTH_STORES
def test_the_newest_complete_epoch_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that was replaced writes to its old folder, which is not read."""
    old = begun(lake)
    write(old, b"one")
    write(begun(lake), b"two")
    lake.store.create(f"inbox/{old.epoch}/2", [b"late"])
    crash_while_taking_over(lake, monkeypatch)
    assert unread(begun(lake)) == [b"one", b"two"]


@BOTH_STORES
def test_a_folder_of_an_earlier_version(lake: Lake) -> None:
    inbox = begun(lake)
    write(inbox, b"one")
    lake.store.remove(f"inbox/{inbox.epoch}/state")
    assert unread(begun(lake)) == [b"one"]


@BOTH_STORES
def test_rows_of_a_change_of_the_catalog_that_was_not_committed(lake: Lake) -> None:
    inbox = begun(lake)
    write(inbox, b"uncommitted", channel=UNCOMMITTED)
    write(inbox, b"one")
    assert unread(begun(lake)) == [b"one"]


@BOTH_STORES
def test_a_request_that_arrives_after_its_write_has_failed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the first write has an error, so no epoch applies the write."""
    inbox = begun(lake)

    def unanswered(*_: object, **__: object) -> bool:
        raise Uncertain("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(lake.store), "create", unanswered)
        with pytest.raises(IoError, match="the store does not answer"):
            write(inbox, b"failed")
    lake.store.create(f"inbox/{inbox.epoch}/1", [b"".join(Record("$table/1", None, b"failed").parts())])
    write(inbox, b"one")
    assert unread(inbox) == [b"one"]
    assert unread(begun(lake)) == [b"one"]


@BOTH_STORES
def test_a_failed_write_that_another_epoch_may_have_taken_over(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway sends it again, under the same id."""
    inbox = begun(lake)
    created = type(lake.store).create

    def unanswered(store: Store, name: str, parts: Iterable[bytes], **_: object) -> bool:
        patch.undo()
        created(store, name, parts)
        begun(lake)
        raise Uncertain("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(lake.store), "create", unanswered)
        with pytest.raises(Replaced):
            write(inbox, b"one")


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_working_folder_that_cannot_be_written(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = begun(lake)
    shutil.rmtree(lake.local.location("inbox"), ignore_errors=True)
    Path(lake.local.location("inbox")).touch()
    with pytest.raises(IoError, match="could not write to the working folder: "):
        write(inbox, b"one")
    Path(lake.local.location("inbox")).unlink()
    write(inbox, b"two")
    assert unread(inbox) == [b"two"]


@BOTH_STORES
def test_a_replaced_writer_keeps_its_own_folder(lake: Lake, tmp_path: Path) -> None:
    old, new = begun(lake), begun(lake)
    write(new, b"one")
    with pytest.raises(Exception, match="another engine"):
        write(old, b"late")
    assert unread(new) == [b"one"]
