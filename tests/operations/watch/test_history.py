"""Tests the history of freshness lag: steps that are recorded, and rows for readers."""

from __future__ import annotations

import errno
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.store.bucket import BucketStore
from tailgate.operations.sketch import STEP_S, Sketch
from tailgate.operations.watch import history
from tailgate.operations.watch.history import HOUR_STEPS, SETTLE_S, Recorder, read, read_next
from testing.s3 import S3

FIRST = HOUR_STEPS * 1_000  # the first step of an hour
STEP = FIRST + 5


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


def reported(step: int, *lags: float, relation: int = 7, unknown: int = 0) -> list[Any]:
    """Returns the row of a gateway, as JSON has it."""
    sketch = Sketch(missing=unknown)
    for lag in lags:
        sketch.add(lag)
    return [relation, step, sketch.missing, sketch.max, {str(bucket): count for bucket, count in sketch.counts.items()}]


def end(step: int) -> float:
    """Returns the time at which a step is recorded."""
    return (step + 1) * STEP_S + SETTLE_S


def rows(lake: Lake) -> list[dict[str, Any]]:
    columns = ("relation", "samples", "unknown", "p50_ms", "p95_ms", "max_ms")
    recorded = read(lake).sort_by([("at", "ascending"), ("relation", "ascending")]).to_pylist()
    return [{"step": int(row["at"].timestamp()) // STEP_S, **{name: row[name] for name in columns}} for row in recorded]


def row(step: int, *figures: int | None, samples: int = 0, unknown: int = 0, relation: int = 7) -> dict[str, Any]:
    names = ("p50_ms", "p95_ms", "max_ms")
    return {"step": step, "relation": relation, "samples": samples, "unknown": unknown, **dict(zip(names, figures, strict=True))}


def recorder(lake: Lake, step: int = STEP) -> Recorder:
    """Returns a recorder that starts in a step."""
    return Recorder(lake, step * STEP_S)


def test_a_step_is_recorded_when_it_has_ended(lake: Lake) -> None:
    recording = recorder(lake)
    assert recording.reported([reported(STEP, 10, 10, 200)], [7], end(STEP) - 0.1) == []
    ((step, of),) = recording.reported([reported(STEP, 10, 10, 200)], [7], end(STEP))
    assert (step, of[7].max) == (STEP, 200)
    assert rows(lake) == [row(STEP, 10, 200, 200, samples=3)]


def test_the_lags_of_several_gateways_are_one_distribution(lake: Lake) -> None:
    recording = recorder(lake)
    recording.reported([reported(STEP, 10, 10, 10), reported(STEP, 500, unknown=2)], [7], end(STEP))
    assert rows(lake) == [row(STEP, 10, 500, 500, samples=4, unknown=2)]


def test_steps_that_are_recorded_together_are_two_requests(bucket: BucketStore, s3: S3) -> None:
    lake = Lake.create(bucket.location(""))
    recording = recorder(lake)
    recording.reported([reported(STEP, 10)], [7], end(STEP))
    s3.requests()
    recording.reported([reported(STEP + 1, 10), reported(STEP + 2, 20)], [7], end(STEP + 2))
    assert s3.requests() == {"PUT": 2}
    assert [(row["step"], row["max_ms"]) for row in rows(lake)] == [(STEP, 10), (STEP + 1, 10), (STEP + 2, 20)]


def test_the_latency_of_endpoints_survives_a_restart(lake: Lake) -> None:
    """Endpoint 9 exists, endpoint 10 was dropped."""
    latencies = [reported(STEP, 3, 4, relation=9), reported(STEP, 5, relation=10)]
    ((step, of),) = recorder(lake).reported([reported(STEP, 10), *latencies], [7], end(STEP), {9, 11})
    assert (step, of.keys(), of[9].max) == (STEP, {7, 9}, 4)
    ((step, again),) = recorder(lake, STEP + 1).recent(0)
    assert (step, again.keys(), again[9].max, again[9].counts) == (STEP, {7, 9}, 4, of[9].counts)


def test_a_relation_without_a_report_is_unknown(lake: Lake) -> None:
    recording = recorder(lake)
    recording.reported([reported(STEP, 10)], [7, 8], end(STEP))
    recording.reported([], [7], end(STEP + 2))
    unknown = {"unknown": STEP_S}
    assert rows(lake) == [
        row(STEP, 10, 10, 10, samples=1),
        row(STEP, None, None, None, relation=8, **unknown),
        row(STEP + 1, None, None, None, **unknown),
        row(STEP + 2, None, None, None, **unknown),
    ]


def test_a_relation_is_not_unknown_before_it_is_there(lake: Lake) -> None:
    """An unknown step would violate its objectives for a minute."""
    recording = recorder(lake)
    recording.reported([], [], end(STEP))
    recording.reported([reported(STEP + 1, 10, relation=8)], [7, 8], end(STEP + 1))
    recording.reported([], [7, 8], end(STEP + 3))
    expected = [row(STEP + 1, 10, 10, 10, samples=1, relation=8)]
    expected += [row(STEP + 3, None, None, None, unknown=STEP_S, relation=id) for id in (7, 8)]
    assert rows(lake) == expected


def test_a_gateway_reports_what_a_stopped_watch_has_missed(lake: Lake) -> None:
    recorder(lake).reported([reported(STEP, 10)], [7], end(STEP))
    again = Recorder(lake, end(STEP + 4))
    assert again.newest == STEP
    recorded = again.reported([reported(step, 20) for step in (STEP + 2, STEP + 3, STEP + 4)], [7], end(STEP + 4))
    assert [step for step, _ in recorded] == [STEP + 2, STEP + 3, STEP + 4]
    assert [r["step"] for r in rows(lake)] == [STEP, STEP + 2, STEP + 3, STEP + 4]
    assert [step for step, _ in again.recent(STEP + 2)] == [STEP + 3, STEP + 4]


def test_a_line_that_is_not_complete_is_ignored(lake: Lake) -> None:
    recorder(lake).reported([reported(STEP, 10)], [7], end(STEP))
    name = f"{history.NAME}/{STEP // HOUR_STEPS}"
    content = bytes(lake.store.get(name))
    lake.store.put(name, content + content[:30])
    again = Recorder(lake, end(STEP + 1))
    again.reported([reported(STEP + 1, 20)], [7], end(STEP + 1))
    assert [r["step"] for r in rows(lake)] == [STEP, STEP + 1]


def test_distributions_are_kept_until_the_next_hour(lake: Lake) -> None:
    last = FIRST + HOUR_STEPS - 1
    recording = recorder(lake, last)
    recording.reported([reported(last, 10, unknown=3)], [7], end(last))
    before = rows(lake)
    recording.reported([reported(last + 1, 20)], [7], end(last + 1))
    assert lake.store.names(history.NAME) == ["1000.parquet", "1001", "1001.parquet"]
    assert rows(lake) == [*before, row(last + 1, 20, 20, 20, samples=1)]
    # also if the process was stopped meanwhile
    later = last + 2 * HOUR_STEPS
    Recorder(lake, end(later)).reported([reported(later, 30)], [7], end(later))
    assert lake.store.names(history.NAME) == ["1000.parquet", "1001.parquet", "1002", "1002.parquet"]
    assert rows(lake) == [*before, row(last + 1, 20, 20, 20, samples=1), row(later, 30, 30, 30, samples=1)]


def test_restarts_after_the_end_of_an_hour_keep_its_rows(lake: Lake) -> None:
    last = FIRST + HOUR_STEPS - 1
    recorder(lake, last - 1).reported([reported(last - 1, 10)], [7], end(last - 1))
    Recorder(lake, end(last)).reported([], [7], end(last - 1))
    Recorder(lake, end(last)).reported([reported(last, 20)], [7], end(last))
    Recorder(lake, end(last)).reported([], [7], end(last))
    assert rows(lake) == [row(last - 1, 10, 10, 10, samples=1), row(last, 20, 20, 20, samples=1)]


def test_rows_that_a_killed_watch_has_not_written_are_written_at_its_start(lake: Lake) -> None:
    """An earlier version has written no rows of the current hour at all."""
    recorder(lake).reported([reported(STEP, 10), reported(STEP + 1, 20)], [7], end(STEP + 1))
    before = rows(lake)
    lake.store.discard([f"{history.NAME}/1000.parquet"])
    again = Recorder(lake, end(STEP + 2))
    again.reported([], [7], end(STEP + 1))
    assert rows(lake) == before
    again.reported([reported(STEP + 2, 30)], [7], end(STEP + 2))
    assert rows(lake) == [*before, row(STEP + 2, 30, 30, 30, samples=1)]


def test_a_step_that_could_not_be_written_is_recorded_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, put = recorder(lake), lake.store.put
    recording.reported([reported(STEP, 10)], [7], end(STEP))

    def full(name: str, content: bytes) -> None:
        if name.endswith(history.PARQUET):
            raise OSError(errno.ENOSPC, "No space left on device")
        put(name, content)

    with monkeypatch.context() as patch:
        patch.setattr(lake.store, "put", full)
        with pytest.raises(OSError, match="No space"):
            recording.reported([reported(STEP + 1, 20)], [7], end(STEP + 1))
    recording.reported([reported(STEP + 1, 20)], [7], end(STEP + 1))
    assert rows(lake) == [row(STEP, 10, 10, 10, samples=1), row(STEP + 1, 20, 20, 20, samples=1)]


def test_the_newest_step_has_the_present_sizes(lake: Lake) -> None:
    """A restart changes nothing. An hour of an earlier version has no sizes."""
    recorder(lake, FIRST - 1).reported([reported(FIRST - 1, 10)], [7], end(FIRST - 1))
    old = f"{history.NAME}/999{history.PARQUET}"
    sink = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(lake.store.get(old))).drop_columns(["rows", "bytes"]), sink)
    lake.store.put(old, sink.getvalue().to_pybytes())
    recorder(lake).reported([reported(step, 10) for step in (STEP, STEP + 1)], [7, 8], end(STEP + 1), (), {"7": [3, 900], "9": [1, 1]})
    again = Recorder(lake, end(STEP + 2))
    again.reported([reported(STEP + 2, 10)], [7], end(STEP + 2), (), {"7": [None, 1000]})
    recorded = read(lake).sort_by([("at", "ascending"), ("relation", "ascending")]).select(["relation", "rows", "bytes"])
    sizes = [tuple(row.values()) for row in recorded.to_pylist()]
    assert sizes == [(7, None, None), (7, None, None), (8, None, None), (7, 3, 900), (8, None, None), (7, None, 1000)]


def test_a_reader_gets_the_rows_of_some_relations_since_a_time(lake: Lake) -> None:
    for hour in range(1000, 1004):
        step = hour * HOUR_STEPS + 7
        recorder(lake, step).reported([reported(step, 10, relation=id) for id in (7, 8, 9)], [7, 8, 9], end(step))

    def times(relations: list[int] | None, since: int | None) -> list[tuple[int, int]]:
        table = read(lake, relations, None if since is None else datetime.fromtimestamp(since, timezone.utc))
        return sorted((row["relation"], int(row["at"].timestamp()) // STEP_S // HOUR_STEPS) for row in table.to_pylist())

    assert times([8], None) == [(8, hour) for hour in range(1000, 1004)]
    assert times([7, 9], (1002 * HOUR_STEPS + 7) * STEP_S) == [(7, 1002), (7, 1003), (9, 1002), (9, 1003)]
    assert times([7], (1002 * HOUR_STEPS + 8) * STEP_S) == [(7, 1003)]
    assert times(None, 1004 * HOUR_STEPS * STEP_S) == []
    assert times([], None) == []


def test_the_history_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HOURS_MAX", 3)
    for hour in range(1000, 1006):
        step = hour * HOUR_STEPS
        recorder(lake, step).reported([reported(step, 10)], [7], end(step))
    assert history.hours(lake.store) == [f"{history.NAME}/{hour}.parquet" for hour in (1005, 1004, 1003, 1002)]
    monkeypatch.setattr(history, "BYTES_MAX", 1)
    Recorder(lake, end(1007 * HOUR_STEPS)).reported([], [], end(1005 * HOUR_STEPS))
    assert history.hours(lake.store) == []


def test_a_reader_gets_a_limited_number_of_rows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(1000, 1004):
        step = hour * HOUR_STEPS
        recorder(lake, step).reported([reported(step, 10)], [7], end(step))
    monkeypatch.setattr(history, "ROWS_MAX", 2)
    assert [r["step"] // HOUR_STEPS for r in rows(lake)] == [1002, 1003]


def test_a_damaged_hour_is_left_out(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    for hour in (1000, 1001):
        recorder(lake, hour * HOUR_STEPS).reported([reported(hour * HOUR_STEPS, 10)], [7], end(hour * HOUR_STEPS))
    name = f"{history.NAME}/1000{history.PARQUET}"
    content = bytes(lake.store.get(name))
    for damaged in (b"", content[:-20], content[:4] + bytes(100) + content[104:]):
        lake.store.put(name, damaged)
        caplog.clear()
        assert [r["step"] // HOUR_STEPS for r in rows(lake)] == [1001]
        assert name in caplog.text


def test_an_hour_that_cannot_be_fetched_is_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in (1000, 1001):
        recorder(lake, hour * HOUR_STEPS).reported([reported(hour * HOUR_STEPS, 10)], [7], end(hour * HOUR_STEPS))
    get = lake.store.get

    def failing(name: str) -> Any:
        if name == f"{history.NAME}/1000{history.PARQUET}":
            raise OSError(errno.EIO, "the bucket does not answer")
        return get(name)

    monkeypatch.setattr(lake.store, "get", failing)
    for reading in (lambda: read(lake), lambda: read_next(lake, 0)):
        with pytest.raises(OSError, match="does not answer"):
            reading()


def test_a_lake_without_a_history(lake: Lake) -> None:
    assert read(lake) == pa.Table.from_pylist([], schema=history.SCHEMA)
