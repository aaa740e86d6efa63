"""Tests that the log's times still increase after the clock is set back, with one warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.writer import log_writer
from tailgate.lake.writer.log_writer import AHEAD_MS, open_epoch


def test_a_clock_that_is_set_back_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    writer = open_epoch(Lake.create(tmp_path / "lake"))
    start = writer.newest.time

    def warnings(clock: int) -> int:
        monkeypatch.setattr(log_writer, "now", lambda: clock)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tailgate.lake"):
            times = [writer.append(kind="tick").time for _ in range(3)]
        assert times == sorted(set(times))
        return len([r for r in caplog.records if "ahead of the clock" in r.message])

    assert warnings(start + 1) == 0
    assert warnings(start - AHEAD_MS - 1000) == 1
    assert warnings(start - AHEAD_MS - 1000) == 0  # it was said
    assert warnings(start + 10_000) == 0
    assert warnings(start - AHEAD_MS) == 1
    writer.close()
