"""Tests the profile of ticks from their spans."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.w1.profile import profile

MS = 1_000_000


def tick(begin: int, rows: int, **ms: int) -> list[tuple[str, Span]]:
    """Returns the spans of a tick that begins at this time in ms, whose steps take so many ms. `rest`: between the JVM's and the entry."""
    spans, at = [("engine", Span(name="read", start_time_unix_nano=0, end_time_unix_nano=begin * MS))], begin
    for name, took in ms.items():
        at += took
        if name != "rest":
            spans.append(("engine", Span(name=name.replace("_", " "), start_time_unix_nano=(at - took) * MS, end_time_unix_nano=at * MS)))
    changed = KeyValue(key="tailgate.changed_rows", value=AnyValue(int_value=rows))
    return [*spans, ("engine", Span(name="tick", start_time_unix_nano=0, end_time_unix_nano=at * MS, attributes=[changed]))]


def test_profile() -> None:
    early = tick(1_000, 9, decode=50, level_0=50, state=50, rest=50, entry=50)
    idle = tick(90_000, 0, decode=0, state=9, rest=0, entry=9)
    ticks = [tick(80_000 + 100 * n, 5, decode=n, level_0=2, level_1=1, state=1, rest=4, entry=3) for n in range(5)]
    figures = profile([early, idle, *ticks, ticks[0][:3]], seconds=30)
    assert {step: round(of["p50"], 3) for step, of in figures.items()} == {
        "decode": 2.0, "operators": 3.0, "state": 1.0, "hand-over": 4.0, "entry": 3.0, "tick": 13.0
    }  # fmt: skip
    assert round(figures["tick"]["mean"], 3) == 13.0
    assert profile([idle], seconds=30) == {}
