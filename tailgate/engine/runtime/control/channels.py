"""The channel of a new source: a reader and a topic, which sources share if they can."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.kafka.start import StartOffsets, StartTime
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.readers import apart, reader_name
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, Source


def on_channel(engine: Engine, source: Source, start: StartOffsets | StartTime | None, catalog: Catalog) -> Source:
    """Returns the source with the channel it reads, a reader and a topic, and its first offsets.

    Sources share a reader unless they need one for themselves. A stored source reads its topic
    from the beginning and shares no reader with another source of that topic. A source of a
    topic that was deleted and created again does not share a reader with sources of the old
    topic.
    """
    brokers, topic, access = engine.place(source)
    kafka_topic = kafka.topic(brokers, topic, access)
    first = None if start is None else kafka.start(brokers, topic, access, kafka_topic.bounds, start)
    others = catalog.each(Source)
    alone = source.stored or source.on_error == "fail"
    used_channels = {i.channel for i in others if alone or i.stored or i.on_error == "fail" or i.paused or i.topic_id != kafka_topic.id}
    other_ways = {reader_name(i) for i in others if apart(i, source)}
    together = transactions.group(source)
    if together is not None and (member := next((i for i in others if transactions.group(i) == together), None)) is not None:
        return replace(source, start=first, topic_id=kafka_topic.id, channel=f"{reader_name(member)}/{topic}")
    number = 0
    while f"{brokers}#{number}/{topic}" in used_channels or f"{brokers}#{number}" in other_ways:
        number += 1
    return replace(source, start=first, topic_id=kafka_topic.id, channel=f"{brokers}#{number}/{topic}")
