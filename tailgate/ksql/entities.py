"""Entities as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tailgate.ksql import connectors
from tailgate.ksql.descriptions import description, type_of
from tailgate.ksql.tables import table

Entity = dict[str, Any]


def entity(value: Entity) -> str:
    """Returns the text of an entity; its JSON if its type has none."""
    kind = value.get("@type")
    match kind:
        case "currentStatus":
            return "\n".join(_status(value))
        case "streams" | "tables":
            names = [f"{kind[:-1].title()} Name", "Kafka Topic", "Key Format", "Value Format", "Windowed"]
            rows = [[i["name"], i["topic"], i["keyFormat"], i["valueFormat"], i["isWindowed"]] for i in value[kind]]
            return table(names, rows)
        case "type_list":
            return table(["Type Name", "Schema"], [[name, type_of(schema, "STRING")] for name, schema in value["types"].items()])
        case "queries":
            names = ["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"]
            return table(names, [_query(query) for query in value["queries"]])
        case "kafka_topics":
            rows = [[t["name"], len(t["replicaInfo"]), next(iter(t["replicaInfo"]), 0)] for t in value["topics"]]
            return table(["Kafka Topic", "Partitions", "Partition Replicas"], rows)
        case "kafka_topics_extended":
            counts = ("consumerCount", "consumerGroupCount")
            rows = [[t["name"], len(t["replicaInfo"]), next(iter(t["replicaInfo"]), 0), *(t[c] for c in counts)] for t in value["topics"]]
            return table(["Kafka Topic", "Partitions", "Partition Replicas", "Consumers", "ConsumerGroups"], rows)
        case "sourceDescription":
            return description(value["sourceDescription"])
        case "source_descriptions":
            return "\n\n".join(map(description, value["sourceDescriptions"]))
        case "function_names":
            return table(["Function Name", "Category"], [[f["name"], f["category"]] for f in value["functions"]])
        case "describe_function":
            return _function(value)
        case "properties":
            return table(["Property", "Value"], [[p["name"], p["value"]] for p in value["properties"]])
        case "assert_topic":
            return f"Topic {value['topicName']} {_exists(value)}."
        case "assert_schema":
            parts = [f"subject {value['subject']}" * (value["subject"] is not None), f"id {value['id']}" * (value["id"] is not None)]
            return f"Schema with {' '.join(filter(None, parts))} {_exists(value)}."
        case "connector_info":
            return "\n".join([f"Created connector {value['info']['name']}", *_warnings(value)])
        case "drop_connector":
            return f"Dropped connector {value['connectorName']}"
        case "warning_entity":
            return str(value["message"])
        case "connector_list":
            return connectors.listed(value)
        case "connector_plugins_list":
            return connectors.plugins(value)
        case "connector_description":
            return connectors.described(value)
        case "queryDescription":
            return _explained(value["queryDescription"])
        case "query_descriptions":
            return "\n\n".join(map(_explained, value["queryDescriptions"]))
    return json.dumps(value, ensure_ascii=False, indent=2)


def _explained(query: Entity) -> str:
    """Returns the text of a query, which has an id and a status if it runs."""
    parts = (("ID", query["id"]), ("SQL", query["statementText"]), ("Status", query["state"]))
    return "\n".join([*(f"{name} : {value}" for name, value in parts if value), "", query["executionPlan"]])


def _exists(value: Entity) -> str:
    return "exists" if value["exists"] else "does not exist"


def _function(value: Entity) -> str:
    head = [
        f"{label:<12}: {text}" for label, text in (("Name", value["name"]), ("Type", value["type"]), ("Overview", value["description"]))
    ]
    rows = [[f"{value['name']}({', '.join(a['type'] for a in f['arguments'])})", f["returnType"]] for f in value["functions"]]
    return "\n".join([*head, table(["Variation", "Returns"], rows)])


def _status(value: Entity) -> Iterator[str]:
    yield table(["Message"], [[value["commandStatus"]["message"]]])
    yield from _warnings(value)


def _warnings(value: Entity) -> Iterator[str]:
    return (f"WARNING: {warning['message']}" for warning in value.get("warnings", ()))


def _query(query: Entity) -> list[Any]:
    status = ",".join(f"{state}:{count}" for state, count in query["statusCount"].items())
    return [query["id"], query["queryType"], status, *(",".join(query[n]) for n in ("sinks", "sinkKafkaTopics")), query["queryString"]]
