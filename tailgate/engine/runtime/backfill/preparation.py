"""Prepares items for a change of the catalog: where views and readers begin, sizes of inputs, shared joins, new operators.

new and refilled views ──► start offsets of their topics ──► sizes of their inputs ──► shared joins ──► operators
sources that nothing reads yet ──► the offsets where their readers begin
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.replacements import replacement, stored_inputs
from tailgate.engine.plan.views.shared_joins import with_shared_joins
from tailgate.engine.plan.views.sizes import with_sizes
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka import transactions
from tailgate.engine.runtime.kafka.readers import beginning, reader_name
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Source, ksqldb_of
from tailgate.lake.errors import ConnectionFailure, ObjectNotInPrerequisiteState, TailgateError
from tailgate.lake.readers.failed import failure
from tailgate.lake.readers.sizes import about
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL

log = logging.getLogger("tailgate.engine")


def prepared(engine: Engine, items: Iterable[Item], catalog: Catalog) -> list[Item]:
    """Returns items that are prepared for their fill.

    Views get the start offsets of their topics, the sizes of their inputs, the columns of shared joins, and new operators.
    """
    catalog = catalog.apply(Change(put=tuple(items)))
    items = [_with_starts(engine, i, catalog) if isinstance(i, MaterializedView) else i for i in items]
    catalog = catalog.apply(Change(put=tuple(items)))
    streams = Streams(catalog)
    return [nodes.with_new_nodes(i, catalog, streams(i)) if isinstance(i, MaterializedView) else i for i in items]


def _with_starts(engine: Engine, item: MaterializedView, catalog: Catalog) -> MaterializedView:
    """Returns a view with the start offsets of its topics, the sizes of its inputs, and the columns of its shared joins.

    If a broker does not answer, the start offsets are those of the last fill. Relations that
    are not ready or about to be replaced have no size here: their replacements will have other
    ids.
    """
    starts, rows = dict[int, Mapping[str, int]](), dict[int, int]()
    coming = catalog.replacements()
    for id in sorted(stored_inputs(item, catalog)):
        source = catalog[id]
        if source.stored and source.ready and id not in coming:
            rows[id] = about(engine.lake, id) + _unread(engine, source)
        if (after := _start_of_rows(engine, item, source)) is not None:
            starts[id] = {ARRIVAL: after}
        if isinstance(source, Source) and not source.stored:
            try:
                bounds = kafka.topic(*engine.place(source)).bounds
            # the broker does not answer, or a secret cannot be decrypted
            except (ConnectionFailure, ObjectNotInPrerequisiteState):
                if id not in item.starts:
                    raise
                starts[id] = item.starts[id]
                continue
            starts[id] = _start(item, source, bounds)
            rows[id] = sum(high - starts[id].get(p, low) for p, (low, high) in bounds.items())
            if any(begin > item.starts.get(id, {}).get(p, begin) for p, begin in starts[id].items()):
                log.warning("topic %s has lost records that %s was made of; it is filled without them", source.topic, item.name)
    return with_shared_joins(with_sizes(replace(item, starts=starts), rows, catalog), catalog)


def _start(item: MaterializedView, source: Source, bounds: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Returns the first offset of each partition that a view reads.

    A query of ksqlDB with the property auto.offset.reset = 'latest' begins at the end of its streams, and begins there again
    when it is filled again.
    """
    if item.ksqldb is None or item.ksqldb.reset == "earliest":
        return beginning(source, bounds)
    starts = item.starts.get(source.id, {})
    return {p: max(starts.get(p, low if starts else high), low) for p, (low, high) in bounds.items()}


def _start_of_rows(engine: Engine, item: MaterializedView, source: Item) -> int | None:
    """Returns the time after which the rows arrive that a view reads of a derived stream, or None if it reads all of them.

    A query of ksqlDB with the property auto.offset.reset = 'latest' begins behind the rows that the stream has when the query is
    created, and begins there again when it is filled again. Streams that earlier versions created lack this time.
    """
    of_item, of_source = ksqldb_of(item), ksqldb_of(source)
    if of_item is None or of_item.reset == "earliest" or of_source is None or of_source.type == "table" or not source.stored:
        return None
    if all(column.name != ARRIVAL for column in source.columns):
        return None
    if item.replaces or item.id in engine.catalog.items:
        return item.starts.get(source.id, {}).get(ARRIVAL)
    return engine.newest.time


def _unread(engine: Engine, source: Item) -> int:
    """Returns the number of unread records in the topic of a keyed source, 0 if unknown."""
    if not isinstance(source, Source):
        return 0
    try:
        bounds = kafka.topic(*engine.place(source)).bounds
    except TailgateError:
        return 0
    read = engine.newest.offsets.get(reader_name(source), {}).get(source.topic, {})
    return sum(max(high - read.get(p, low), 0) for p, (low, high) in bounds.items())


def first_offsets(engine: Engine, sources: Iterable[Source]) -> dict[str, kafka.Offsets]:
    """Returns start offsets of the topics that no reader reads yet.

    Keyed sources and transaction topics begin at the first record, other sources at the end,
    since fills bring the history of those.
    """
    offsets = engine.newest.offsets
    out: dict[str, kafka.Offsets] = {}
    for source in sources:
        reader, topic = reader_name(source), source.topic
        for other in transactions.topics(source)[1:]:
            if other not in offsets.get(reader, {}):
                brokers, _, access = engine.place(source)
                out.setdefault(reader, {})[other] = {p: low for p, (low, _) in kafka.topic(brokers, other, access).bounds.items()}
        if topic not in offsets.get(reader, {}):
            bounds = kafka.topic(*engine.place(source)).bounds
            begin = beginning(source, bounds) if source.stored else {p: high for p, (_, high) in bounds.items()}
            out.setdefault(reader, {})[topic] = begin
    return out


def sources_to_read(catalog: Catalog) -> tuple[Source, ...]:
    """Returns the sources to read: keyed ones, and those that a materialized view reads that is not paused."""
    ids = {i.id for i in catalog.each(Source) if i.stored}
    for item in catalog.each(MaterializedView):
        if failure(item) is None and not item.paused:
            ids |= {s for s in stored_inputs(item, catalog) if isinstance(catalog[s], Source)}
    return tuple(catalog.expect(Source, i) for i in sorted(ids))


def replacements_of(items: Iterable[MaterializedView], catalog: Catalog) -> list[MaterializedView]:
    """Returns a replacement for each of these items, as one group."""
    return [replacement(item, catalog.next_id + 2 * n, catalog.next_id) for n, item in enumerate(items)]
