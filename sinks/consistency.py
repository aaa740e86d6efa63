"""What happened when, for readers of several topics: a topic with a BEGIN and an END for each time that changed the sink's.

    {"id": "1760000000000", "status": "BEGIN", "event_count": null, "data_collections": null}
    {"id": "1760000000000", "status": "END", "event_count": 3, "data_collections": [{"data_collection": topic, "event_count": 3}]}

Both are in the transaction of the events, so a reader of read_committed never sees one without them. Key: the id. Always JSON.

Source: Materialize 0.25, "CREATE SINK", CONSISTENCY TOPIC.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from sinks.settings import Settings

Mark: TypeAlias = tuple[str, bytes, bytes]  # topic, key, value


def marks(settings: Settings, time: int, events: int) -> list[Mark]:
    """The two of a time; none if the sink has no such topic."""
    if not settings.consistency_topic:
        return []
    id = str(time)
    begin = {"id": id, "status": "BEGIN", "event_count": None, "data_collections": None}
    collections = [{"data_collection": settings.topic, "event_count": events}]
    end = {"id": id, "status": "END", "event_count": events, "data_collections": collections}
    return [(settings.consistency_topic, id.encode(), json.dumps(mark).encode()) for mark in (begin, end)]
