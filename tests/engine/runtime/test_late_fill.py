"""A fill waits for its turn until the history that it was to read is gone."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.runtime.backfill.fills import AT_ONCE, Fill
from tailgate.lake.readers import reading
from tests.engine.runtime.inside import Inside
from tests.lake.life import short_history

pytestmark = pytest.mark.spark

GONE_S = 60.0


def test_a_backfill_whose_history_was_removed_restarts(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    short_history(monkeypatch)
    caplog.set_level(logging.WARNING, "tailgate")
    engine = Inside(session, tmp_path / "lake")
    try:
        engine.execute("CREATE TABLE t (k int PRIMARY KEY)")
        engine.insert("t", (1,))
        for _ in range(AT_ONCE):
            Fill._turn.acquire()
        try:
            create = threading.Thread(target=engine.execute, args=("CREATE MATERIALIZED VIEW v AS SELECT k + 1 AS k FROM t",))
            create.start()
            deadline = time.monotonic() + GONE_S
            while engine.lake.catalog().find("v") is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            began, key = engine.engine.newest.time, 1
            while reading.since(engine.lake) <= began:
                assert time.monotonic() < deadline
                key += 1
                engine.insert("t", (key,))
                engine.round()
                engine.sweep()
        finally:
            for _ in range(AT_ONCE):
                Fill._turn.release()
        create.join(GONE_S)
        assert not create.is_alive()
        assert engine.rows("v") == {(k + 1,): 1 for k in range(1, key + 1)}
        assert "filling v begins again" in caplog.text
    finally:
        engine.end()
