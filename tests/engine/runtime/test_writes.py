"""The JVM ends after an entry of the inbox is durable, and before the driver has told it about the entry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tailgate.engine.runtime.backfill.fills import Fill, Piece
from tailgate.lake.control import Part, Write
from tailgate.lake.errors import CrashShutdown, Replaced
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import stream
from tailgate.lake.types import arrow_schema
from tailgate.lake.writer.log_writer import open_epoch
from tests.engine.runtime.inside import Inside

pytestmark = pytest.mark.spark

KEY = memoryview((17).to_bytes(8, sys.byteorder)).cast("Q")  # the hash of the row's key


class Gone:
    """Stands for the objects of a JVM that has ended."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


class Unawaited:
    """A client that does not wait for a fill."""

    def awaits(self, fill: Fill) -> bool:
        return False


@pytest.fixture
def engine(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inside]:
    """Yields an engine with a row in table t; its JVM does not answer."""
    engine = Inside(session, tmp_path / "lake")
    engine.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")
    engine.insert("t", (1, 0))
    with monkeypatch.context() as patch:
        patch.setattr(engine.engine, "_source", Gone())
        yield engine
    engine.end()


def increment(engine: Inside, base: int) -> bytes:
    """Returns the body of a write that read n = 0 at a number of the inbox and adds one."""
    table = engine.engine.catalog.relation("t")
    schema = arrow_schema(table.columns, weight=True)
    columns = ([1, 1], [0, 1], [-1, 1])
    changes = stream(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema))
    return Write(base, (), (Part(table.id, changes, KEY),)).encode()


def test_a_durable_write_without_an_answer_counts_for_later_writes(engine: Inside) -> None:
    base = engine.engine.inbox.newest
    with pytest.raises(CrashShutdown):
        engine.writes.write(increment(engine, base))
    assert engine.writes.write(increment(engine, base)) == {"conflict": base + 1}
    assert engine.engine.stopping


def test_a_durable_write_of_an_engine_that_hands_over(engine: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine stops after the write is durable, so the next engine reads it."""
    entered = engine.engine.inbox.newest + 1

    class Ending:
        """Stands for the objects of a JVM that ends while it receives the entry."""

        def advance(self, *_: object) -> None:
            engine.engine.stop()
            raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(engine.engine, "_source", Ending())
    assert engine.writes.write(increment(engine, entered - 1)) == {"number": entered}
    engine.engine.raise_failure()


def test_a_write_that_the_next_engine_may_miss(engine: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine has begun, so the write is not acknowledged, also if it is sent again to the one that was replaced."""
    monkeypatch.setattr(engine.engine, "_source", SimpleNamespace(advance=lambda *_: None))  # no tick reads the entry
    base = engine.engine.inbox.newest
    writer = open_epoch(Lake(tmp_path / "lake"), take_over=True)
    for again in (False, True):
        with pytest.raises(Replaced):
            engine.writes.write(increment(engine, base), "a", again)
        assert engine.engine.inbox.newest == base + 1
    writer.close()


def test_a_piece_of_a_fill_is_sent_once(engine: Inside) -> None:
    base = engine.engine.inbox.newest
    item = engine.engine.catalog.relation("t")
    fill = Fill(engine.engine, item, (), Unawaited(), engine.installation.letters)  # type: ignore[arg-type]
    with pytest.raises(CrashShutdown):
        fill._send(Piece([], 0))
    assert engine.engine.inbox.newest == base + 1
