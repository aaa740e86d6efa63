"""The rules of writers and readers (docs/architecture.md, section 3).

Each rule is checked once as it is, and once while it is broken on purpose: then its check must
fail.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties

from tailgate.lake.folder import Lake  # fmt: skip
from tailgate.lake.host import files
from tailgate.lake.log import segments
from tailgate.lake.readers import holds, reading
from tailgate.lake.store import fencing
from tailgate.lake.store.folder import FolderStore
from tailgate.lake.tables import delta, merging
from tailgate.lake.tables.stored_relations import table_name
from tailgate.lake.writer import engines, log_writer, retention
from tailgate.lake.writer.engines import Announcement
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.reader_rules import check_r1, check_r2, check_r3, check_r4, check_r5
from tests.lake.writer_rules import (
    check_w1,
    check_w2,
    check_w2_reader,
    check_w3,
    check_w3_rolled,
    check_w3_temporary,
    check_w4,
    check_w4_age,
    check_w5,
    check_w5_conflict,
    check_w5_one_time,
    check_w6,
    check_w7_age,
    check_w7_readers,
    check_w7_since,
    check_w7_tables,
)

# ---- how each rule is broken ---------------------------------------------------------------------------------------------

Break = Callable[[pytest.MonkeyPatch], None]


def patched(target: Any, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(target, name, value)


def _replacing(path: Path, parts: Any, temporary: Path, *, linked: Any = lambda: None) -> bool:
    files.write(temporary, parts)
    os.replace(temporary, path)
    return True


def _unfenced_replacing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(files, "create", _replacing)
    patch.setattr(fencing.FolderWriter, "fence_others", lambda self: None)


def _on_top(table: Any, *arguments: Any, apply: Any = merging.apply) -> Any:
    table.update_incremental()
    return apply(table, *arguments)


def _visible_first(path: Path, parts: Any, temporary: Path, *, linked: Any = lambda: None) -> bool:
    path.write_bytes(b"")
    os.link(path, temporary)
    files.write(path, parts)
    files.sync_folder(path.parent)
    return True


def _same_folder(self: Any) -> None:
    self.path = self._parent / "same"
    self.path.mkdir(exist_ok=True)


def _no_transaction(epoch: int, application: str | None = None, n: int = 0) -> Any:
    return CommitProperties()


def _at_head(lake: Lake, stored: Any, version: int, *, read: Any = reading.read_table) -> pa.Table:
    return read(lake, stored, delta.table(lake.store, table_name(stored.id)).version())


def _newest_only(lake: Lake, at: int | None, *, base: Any = reading.base) -> Any:
    return base(lake, None)


def _without_change(header: Any, *, encode: Any = log_writer.encode_header) -> bytes:
    return encode(log_writer.replace(header, catalog=None))  # type: ignore[no-any-return]


def _all_noted(self: Any, newest: Any, versions: Any, *, bring: Any = Follower._note) -> None:
    for table in self._tables.values():
        table.version = min(table.version, 1)
    bring(self, newest, versions)


RULES: dict[Callable[[Lake], None], Break] = {
    check_w1: _unfenced_replacing,
    check_w2: patched(files, "create", _visible_first),
    check_w2_reader: patched(FolderStore, "sync", lambda self, names: None),
    check_w3: patched(files, "create", _replacing),
    check_w3_temporary: patched(fencing.FolderWriter, "renew", _same_folder),
    check_w3_rolled: patched(fencing.FolderWriter, "fence_others", lambda self: None),
    check_w4: patched(fcntl, "flock", lambda descriptor, operation: None),
    check_w4_age: patched(engines, "EXPIRED_LOOKS", 0),
    check_w5: patched(delta, "commit", _no_transaction),
    check_w5_one_time: patched(Follower, "_note", _all_noted),
    check_w5_conflict: patched(merging, "apply", _on_top),
    check_w6: patched(log_writer, "encode_header", _without_change),
    check_w7_readers: patched(holds, "holds", lambda lake: []),
    check_w7_tables: patched(retention, "removable", lambda lake, *_: lake.log.newest().n - 1),
    check_w7_since: patched(retention, "since_wanted", lambda lake, *_: lake.log.newest().time),
    check_w7_age: patched(retention, "AGE_MIN_MS", -1),
    check_r1: patched(reading, "read_table", _at_head),
    check_r2: patched(reading, "base", _newest_only),
    check_r3: patched(reading, "since", lambda lake: 0),
    check_r4: patched(segments.Segments, "find", lambda self, n: None),
    check_r5: patched(log_writer, "carried", lambda header, *, carried=log_writer.carried: log_writer.replace(carried(header), time=0)),
}


# rules whose checks observe or replace operations of files; the storage of a bucket has its own tests
LONG = (check_w3_rolled, check_w5_conflict, check_w7_age, check_w7_readers, check_w7_since, check_w7_tables, check_r1, check_r2, check_r3)
OF_THE_FOLDER = (check_w2, check_w2_reader, check_w3, check_w3_temporary, check_w4, check_w4_age)


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=[pytest.mark.long] * (rule in LONG)) for rule in RULES if rule not in OF_THE_FOLDER],
    ids=lambda rule: rule.__name__.removeprefix("check_"),
)
def test_the_rule_holds_in_a_bucket(rule: Callable[[Lake], None], lake: Lake) -> None:
    rule(lake)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.removeprefix("check_"))
def test_the_rule_holds(rule: Callable[[Lake], None], lake: Lake) -> None:
    rule(lake)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.removeprefix("check_"))
def test_the_check_notices_a_broken_rule(rule: Callable[[Lake], None], lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[rule](monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011  # a wrong answer, or any error that follows from it
        rule(lake)


def test_the_announcement_has_one_writer_at_a_time(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the check of the announcement, in another thread, does not repeat it while it is first written."""
    writer, written = open_epoch(lake), list[int]()
    write = Announcement.write

    def slow(self: Announcement, lake: Lake) -> None:
        written.append(self.epoch)
        if len(written) < 3:
            writer.renew_lease()
        write(self, lake)

    monkeypatch.setattr(Announcement, "write", slow)
    writer.announce(address="127.0.0.1:1", token="t")
    assert len(written) == 1
    writer.renew_lease()
    assert len(written) == 1, "nothing has changed the announcement"
    writer.close()
