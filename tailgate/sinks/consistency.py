"""The consistency topic: a BEGIN and an END record for each time at which a sink wrote events.

    {"id": "1760000000000", "status": "BEGIN", "event_count": null, "data_collections": null}
    {"id": "1760000000000", "status": "END", "event_count": 3, "data_collections": [{"data_collection": topic, "event_count": 3}]}

With it, readers of several topics can tell which events belong to one time. Both records are in the
transaction of the events, so readers of read_committed see all or none. The key is the id, and the
format is always JSON.

Source: Materialize 0.25, "CREATE SINK", CONSISTENCY TOPIC.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from tailgate.sinks.settings import Settings

Mark: TypeAlias = tuple[str, bytes, bytes]  # topic, key, value


def marks(settings: Settings, time: int, events: int) -> list[Mark]:
    """Returns the two records of a time; an empty list if the sink has no consistency topic."""
    if not settings.consistency_topic:
        return []
    id = str(time)
    begin = {"id": id, "status": "BEGIN", "event_count": None, "data_collections": None}
    collections = [{"data_collection": settings.topic, "event_count": events}]
    end = {"id": id, "status": "END", "event_count": events, "data_collections": collections}
    return [(settings.consistency_topic, id.encode(), json.dumps(mark).encode()) for mark in (begin, end)]
