"""Entities and rows as text: tables with columns in width of their longest value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

Entity = dict[str, Any]


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table with a line under its names and one at its end.

    >>> print(table(["ID", "N"], [["a", 1]]))
     ID | N
    --------
     a  | 1
    --------
    """
    cells = [[shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    rule = "-" * (sum(widths) + 3 * len(widths) - 1)
    lines = [" " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (names, *cells)]
    return "\n".join([lines[0], rule, *lines[1:], rule])


def shown(value: Any) -> str:
    """Returns a value as text: JSON, texts without quotes, and null."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
        case "queries":
            names = ["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"]
            return table(names, [_query(query) for query in value["queries"]])
        case "kafka_topics":
            rows = [[t["name"], len(t["replicaInfo"]), next(iter(t["replicaInfo"]), 0)] for t in value["topics"]]
            return table(["Kafka Topic", "Partitions", "Partition Replicas"], rows)
        case "sourceDescription":
            return _description(value["sourceDescription"])
        case "queryDescription":
            described = value["queryDescription"]
            return (
                f"ID : {described['id']}\nSQL : {described['statementText']}\nStatus : {described['state']}\n\n{described['executionPlan']}"
            )
    return json.dumps(value, ensure_ascii=False, indent=2)


def _status(value: Entity) -> Iterator[str]:
    yield table(["Message"], [[value["commandStatus"]["message"]]])
    yield from (f"WARNING: {warning['message']}" for warning in value.get("warnings", ()))


def _query(query: Entity) -> list[Any]:
    status = ",".join(f"{state}:{count}" for state, count in query["statusCount"].items())
    return [query["id"], query["queryType"], status, *(",".join(query[n]) for n in ("sinks", "sinkKafkaTopics")), query["queryString"]]


def _description(described: Entity) -> str:
    word = "primary key" if described["type"] == "TABLE" else "key"
    rows = [[f["name"], type_of(f["schema"]) + (f" ({word})" if f.get("type") == "KEY" else "")] for f in described["fields"]]
    return f"Name                 : {described['name']}\n{table(['Field', 'Type'], rows)}"


def type_of(schema: Entity) -> str:
    """Returns a type as DESCRIBE shows it."""
    name, inner = schema["type"], schema.get("memberSchema")
    if name == "STRING":
        return "VARCHAR(STRING)"
    if name == "STRUCT":
        return "STRUCT<" + ", ".join(f"{f['name']} {type_of(f['schema'])}" for f in schema["fields"]) + ">"
    if inner is not None:
        return f"{name}<{'STRING, ' * (name == 'MAP')}{type_of(inner)}>"
    numbers = schema.get("parameters", {}).values()
    return f"{name}({', '.join(map(str, numbers))})" if numbers else str(name)
