"""The first records of a source: the options START OFFSET and START TIMESTAMP of CREATE SOURCE."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.statements import CreateSource, option


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The offsets of the first records of a source, by partition."""

    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartTime:
    """The time of the first record of a source in ms, relative to now if negative."""

    time: int


def start_of(statement: CreateSource) -> StartOffsets | StartTime | None:
    """Returns where a source starts, or None for the first record. The runtime looks up the offsets in Kafka."""
    offsets, time = option(statement.options, "start_offset"), option(statement.options, "kafka_time_offset")
    if offsets is not None and time is not None:
        raise InvalidParameterValue("a start offset and a start timestamp exclude one another")
    if time is not None:
        if not isinstance(time, int) or isinstance(time, bool):
            raise InvalidParameterValue("a start timestamp is a number of milliseconds")
        return StartTime(time)
    if offsets is None:
        return None
    starts = []
    for offset in offsets if isinstance(offsets, tuple) else (offsets,):
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise InvalidParameterValue("start offsets are numbers from 0 up")
        starts.append(offset)
    return StartOffsets(tuple(starts))
