"""A new epoch takes over the unread entries of the inbox, wherever the previous one ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
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
def test_a_replaced_writer_keeps_its_own_folder(lake: Lake, tmp_path: Path) -> None:
    old, new = begun(lake), begun(lake)
    write(new, b"one")
    with pytest.raises(Exception, match="another engine"):
        write(old, b"late")
    assert unread(new) == [b"one"]
