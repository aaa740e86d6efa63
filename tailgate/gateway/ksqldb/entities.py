"""The results of SHOW and DESCRIBE as entities of ksqlDB's HTTP API: JSON objects with an `@type`.

The dialect of the HTTP API returns an entity as a row, with the number of the last log entry that the gateway has applied. An entity
has no `statementText`, which the server adds.

Source: ksqlDB 0.29, documentation, "Run a ksqlDB statement".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tailgate.gateway.catalog.relations.item_status import MaySee
from tailgate.gateway.ksqldb.fields import Entity, fields_of, schema
from tailgate.gateway.ksqldb.figures import Figures, Measured
from tailgate.gateway.ksqldb.lists import described_item, query_status, query_type, sink_of
from tailgate.gateway.ksqldb.targets import key_of
from tailgate.gateway.ksqldb.windows import window_type
from tailgate.lake.catalog import Catalog, CustomType, Item, MaterializedView, is_transient, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.sql.ksqldb.custom_types import definition
from tailgate.sql.ksqldb.expressions import SourceName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries import key_names
from tailgate.sql.ksqldb.queries.scopes import scope_of
from tailgate.sql.ksqldb.queries.timestamps import timestamp_of
from tailgate.sql.statements import Show

COLUMNS = (Field("entity", TEXT), Field("log_entry", INT8))
# topics of sinks' progress, registries and Kafka Connect; the engine leaves out those of Kafka itself, __…
HIDDEN_TOPIC = re.compile(r"(_tailgate-.*|_confluent.*|_schemas|connect-(configs|offsets|status|statuses))$")


def entity(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    """Returns the entity of a SHOW, one of KINDS. `topics`: the engine's lines for SHOW TOPICS. Raises 42P01."""
    return KINDS[show.what](show, catalog, topics, may_see)


def described_items(show: Show, catalog: Catalog) -> list[Item]:
    """Returns the items of a DESCRIBE: the one that it names, or all streams or tables. Raises 42P01."""
    if show.name is not None:
        return [described_item(show.name, catalog)]
    type = "stream" if show.what.startswith("describe streams") else "table"
    return [item for item, ksqldb in _items(catalog) if ksqldb.type == type and not ksqldb.into]


def descriptions(show: Show, catalog: Catalog, measured: Measured | None, may_see: MaySee) -> Entity:
    """Returns the entity of a DESCRIBE, one of DESCRIBED. `measured`: the figures of EXTENDED."""
    described = [_description(item, catalog, measured, may_see) for item in described_items(show, catalog)]
    if show.name is not None:
        return {"@type": "sourceDescription", "sourceDescription": described[0]}
    return {"@type": "source_descriptions", "sourceDescriptions": described}


def with_errors(queries: Sequence[Entity], failing: Collection[str]) -> list[Entity]:
    """Returns the entities of queries. Those that run and wait for Kafka or the registry, with these ids, have the state ERROR."""
    broken = (query["state"] == "RUNNING" and query["id"] in failing for query in queries)
    return [{**q, **_state(q["id"], q["queryType"], "ERROR")} if is_broken else q for q, is_broken in zip(queries, broken, strict=True)]


def relations_over(topics: Sequence[str], catalog: Catalog, may_see: MaySee) -> list[Entity]:
    """Returns the descriptions of the streams and tables that read these topics."""
    over = [item for item, ksqldb in _items(catalog) if ksqldb.topic in topics and not ksqldb.query]
    return [_description(item, catalog, None, may_see) for item in over]


def _streams(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    streams = [_listed(item, ksqldb) for item, ksqldb in _items(catalog) if ksqldb.type == "stream" and not ksqldb.into]
    return {"@type": "streams", "streams": streams}


def _tables(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    return {"@type": "tables", "tables": [_listed(item, ksqldb) for item, ksqldb in _items(catalog) if ksqldb.type == "table"]}


def _queries(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    pushed = [item for item in catalog.visible if isinstance(item, MaterializedView) and is_transient(item)]
    queries = ((item, ksqldb_of(item)) for item in (*running(catalog), *pushed))
    return {"@type": "queries", "queries": [_query(item, ksqldb, catalog, may_see) for item, ksqldb in queries if ksqldb is not None]}


def _topics(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    rows = _shown(show, topics)
    listed = [{"name": name, "replicaInfo": [int(replicas)] * int(partitions)} for name, partitions, replicas, *_ in rows]
    return {"@type": "kafka_topics", "topics": listed}


def _shown(show: Show, topics: Sequence[str]) -> list[list[str]]:
    """Returns the fields of the engine's lines for SHOW TOPICS, without those of hidden topics unless the statement has ALL."""
    rows = [line.split("\t") for line in topics]
    return rows if show.hidden else [row for row in rows if not HIDDEN_TOPIC.match(row[0])]


def _types(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    custom = sorted((i for i in catalog.each(CustomType) if catalog.name_of(i).schema is None), key=lambda item: item.name)
    return {"@type": "type_list", "types": {ksqldb_name(item.name): schema(definition(item)) for item in custom}}


def _consumed_topics(show: Show, catalog: Catalog, topics: Sequence[str], may_see: MaySee) -> Entity:
    rows = _shown(show, topics)
    listed = [
        {
            "name": name,
            "replicaInfo": [int(replicas)] * int(partitions),
            "consumerCount": int(consumers),
            "consumerGroupCount": int(groups),
        }
        for name, partitions, replicas, consumers, groups in rows
    ]
    return {"@type": "kafka_topics_extended", "topics": listed}


def _description(item: Item, catalog: Catalog, measured: Measured | None, may_see: MaySee) -> Entity:
    figures = Figures(0, 0, "", "") if measured is None else measured.of(item)
    failing: Collection[str] = () if measured is None else measured.failing
    ksqldb = ksqldb_of(item)
    own = [(item, ksqldb)] if ksqldb is not None and ksqldb.query else []
    queries = [(i, k) for i, k in _items(catalog) if k.query]
    writes = [*own, *((i, k) for i, k in queries if k.into == item.id)]
    reads = [(i, k) for i, k in queries if item.id in i.depends and k.into != item.id]
    return {
        "name": ksqldb_name(item.name),
        "windowType": window_type(item, catalog),
        "readQueries": with_errors([_query(i, k, catalog, may_see) for i, k in reads], failing),
        "writeQueries": with_errors([_query(i, k, catalog, may_see) for i, k in writes], failing),
        "fields": described_fields(item),
        "type": "TABLE" if key_of(item) else "STREAM",
        "timestamp": "" if ksqldb is None else ksqldb_name(timestamp_of(ksqldb).name),
        "statistics": figures.statistics,
        "errorStats": figures.errors,
        "extended": measured is not None,
        "keyFormat": "" if ksqldb is None else ksqldb.key_format,
        "valueFormat": "" if ksqldb is None else ksqldb.value_format,
        "topic": "" if ksqldb is None else ksqldb.topic,
        "partitions": figures.partitions,
        "replication": figures.replication,
        "statement": ksqldb.statement if ksqldb is not None and may_see(item) else "",
        "queryOffsetSummaries": list(figures.offsets),
        "sourceConstraints": [],
    }


KINDS: dict[str, Callable[[Show, Catalog, Sequence[str], MaySee], Entity]] = {
    "streams": _streams,
    "ksqldb tables": _tables,
    "queries": _queries,
    "topics": _topics,
    "topics extended": _consumed_topics,
    "types": _types,
}
# the forms of DESCRIBE of streams and tables
DESCRIBED = ("describe", *(f"describe {what}" for what in ("streams", "tables", "extended", "streams extended", "tables extended")))


def running(catalog: Catalog) -> list[Item]:
    """Returns the items that persistent queries maintain, in the order in which the queries were created."""
    queries = ((item, ksqldb) for item, ksqldb in _items(catalog) if ksqldb.query)
    return [item for item, _ in sorted(queries, key=lambda pair: pair[1].number)]


def query_descriptions(plans: Sequence[tuple[Item, Sequence[str]]], catalog: Catalog, may_see: MaySee, failing: Collection[str]) -> Entity:
    """Returns the entity of SHOW QUERIES EXTENDED. `plans`: the items of the queries, with the lines of their plans.

    `failing`: the ids of those that wait for Kafka or the registry.
    """
    described = [_described_query(item, plan, catalog, may_see, failing) for item, plan in plans]
    return {"@type": "query_descriptions", "queryDescriptions": described}


def query_description(item: Item, plan: Sequence[str], catalog: Catalog, may_see: MaySee, failing: Collection[str]) -> Entity:
    """Returns the entity of EXPLAIN of a persistent query. `plan`: the lines of the plan of its view.

    `failing`: the ids of the queries that wait for Kafka or the registry.
    """
    return {"@type": "queryDescription", "queryDescription": _described_query(item, plan, catalog, may_see, failing)}


def _described_query(item: Item, plan: Sequence[str], catalog: Catalog, may_see: MaySee, failing: Collection[str]) -> Entity:
    ksqldb = ksqldb_of(item)
    assert ksqldb is not None
    sink = sink_of(item, ksqldb, catalog)
    return QueryDescription(
        id=ksqldb.query,
        text=ksqldb.statement if may_see(item) else "",
        windows=window_type(item, catalog),
        fields=described_fields(item),
        sources=[catalog[id].name for id in item.depends if catalog[id].is_relation],
        sinks=[] if sink is None else [sink.name],
        plan=plan,
        reset=ksqldb.reset,
        type=query_type(item),
        state=query_status(item, failing),
    ).entity


@dataclass(frozen=True)
class QueryDescription:
    """The description of a query in the API. `plan`: the lines of the plan of its view. `state`: None if it does not run."""

    id: str
    text: str
    windows: str | None
    fields: Sequence[Entity]
    sources: Sequence[str]
    sinks: Sequence[str]
    plan: Sequence[str]
    reset: str
    type: str
    state: str | None

    @property
    def entity(self) -> Entity:
        return {
            "id": self.id,
            "statementText": self.text,
            "windowType": self.windows,
            "fields": list(self.fields),
            "sources": list(map(ksqldb_name, self.sources)),
            "sinks": list(map(ksqldb_name, self.sinks)),
            "topology": "",
            "executionPlan": "\n".join(self.plan),
            "overriddenProperties": {"auto.offset.reset": self.reset},
            "ksqlHostQueryStatus": {},
            "queryType": self.type,
            "queryErrors": [],
            "tasksMetadata": [],
            "state": self.state,
        }


def _items(catalog: Catalog) -> list[tuple[Item, KsqldbItem]]:
    """Returns the streams and tables of ksqlDB that can be named without a schema, by name."""
    visible = [i for i in catalog.visible if catalog.name_of(i).schema is None]
    return sorted(((i, k) for i in visible if (k := ksqldb_of(i)) is not None), key=lambda pair: pair[0].name)


def _listed(item: Item, ksqldb: KsqldbItem) -> Entity:
    return {
        "type": ksqldb.type.upper(),
        "name": ksqldb_name(item.name),
        "topic": ksqldb.topic,
        "keyFormat": ksqldb.key_format,
        "valueFormat": ksqldb.value_format,
        "isWindowed": WINDOW_BOUNDS[0] in ksqldb.message_key,
    }


def _query(item: Item, ksqldb: KsqldbItem, catalog: Catalog, may_see: MaySee) -> Entity:
    sink = sink_of(item, ksqldb, catalog)
    return {
        "queryString": ksqldb.statement if may_see(item) else "",
        "sinks": [] if sink is None else [ksqldb_name(sink.name)],
        "sinkKafkaTopics": [] if sink is None else [ksqldb.topic],
        **_state(ksqldb.query, query_type(item), query_status(item)),
    }


def push_query(id: str, text: str) -> Entity:
    """Returns the entity of a running push query without a view."""
    return {"queryString": text, "sinks": [], "sinkKafkaTopics": [], **_state(id, "PUSH", "RUNNING")}


def _state(id: str, type: str, status: str) -> Entity:
    return {"id": id, "statusCount": {status: 1}, "queryType": type, "state": status}


def described_fields(item: Item) -> list[Entity]:
    """Returns the columns of a relation, without pseudo columns and bounds of windows. Those in the key have the type KEY."""
    return fields_of(scope_of(item, SourceName(item.name)).columns, key_names(item))
