"""Traces of ticks. The engine and each gateway send their spans; the ids follow from the lake and the entry of the log.

A trace has the span `tick`, from the arrival of its oldest record until its log entry is durable, with the spans

    read                         from the arrival of the oldest record until the tick begins
    decode, level 0, …, state    in the JVM; of several partitions, the longest of each
    entry                        until the log entry is durable
    mirror                       of each gateway, from reading the entry until clients see it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from tailgate.operations.otlp.export import Exporter

SCOPE = InstrumentationScope("tailgate")
TICK, MIRROR = "tick", "mirror"
Interval = tuple[str, int, int]  # name, begin and end in nanoseconds since the epoch


class TickTraces:
    """The spans of one process for the ticks of a lake."""

    def __init__(self, exporter: Exporter, lake: str) -> None:
        self._exporter, self._lake = exporter, lake

    def tick(self, n: int, begin: int, end: int, steps: Iterable[Interval], attributes: Mapping[str, int]) -> None:
        """Sends the span of the tick with log entry n, and those of its steps."""
        root = self._context(n, TICK)
        self._send(TICK, root, None, begin, end, attributes)
        for name, step_begin, step_end in steps:
            self._send(name, self._context(n, name), root, step_begin, step_end)

    def mirror(self, n: int, begin: int, end: int) -> None:
        """Sends the span of this gateway's mirrors, which show the tick from `end` on."""
        instance = str(self._exporter.resource.attributes["service.instance.id"])
        self._send(MIRROR, self._context(n, MIRROR + instance), self._context(n, TICK), begin, end)

    def _context(self, n: int, name: str) -> SpanContext:
        trace_id = int.from_bytes(blake2b(f"{self._lake}/{n}".encode(), digest_size=16).digest(), "big")
        span_id = int.from_bytes(blake2b(f"{self._lake}/{n}/{name}".encode(), digest_size=8).digest(), "big")
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def _send(
        self, name: str, context: SpanContext, parent: SpanContext | None, begin: int, end: int, attributes: Mapping[str, int] | None = None
    ) -> None:
        span = ReadableSpan(
            name, context, parent, self._exporter.resource, {f"tailgate.{key}": value for key, value in (attributes or {}).items()},
            kind=SpanKind.INTERNAL, start_time=begin, end_time=max(begin, end), instrumentation_scope=SCOPE,
        )  # fmt: skip
        self._exporter.spans.on_end(span)
