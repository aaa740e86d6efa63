"""The text of DESCRIBE and DESCRIBE … EXTENDED, from the entity.

Source: ksqlDB 0.29, documentation, "DESCRIBE".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tailgate.ksql.tables import table

Entity = dict[str, Any]
TYPE_WIDTH = 16  # of the type of a column in the key


def description(described: Entity) -> str:
    """Returns the text of a source description."""
    return "\n".join(_extended(described)) if described["extended"] else "\n".join(_short(described))


def _short(described: Entity) -> Iterator[str]:
    yield f"Name                 : {described['name']}"
    yield table(["Field", "Type"], _columns(described))
    yield "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"


def _extended(described: Entity) -> Iterator[str]:
    kind = described["type"]
    yield f"Name                 : {described['name']}"
    yield f"Type                 : {kind}"
    yield f"Timestamp field      : {described['timestamp'] or 'Not set - using <ROWTIME>'}"
    yield f"Key format           : {described['keyFormat']}"
    yield f"Value format         : {described['valueFormat']}"
    counts = f"partitions: {described['partitions']}, replication: {described['replication']}"
    yield f"Kafka topic          : {described['topic']} ({counts})"
    yield f"Statement            : {_ended(described['statement'])}"
    yield ""
    yield table(["Field", "Type"], _columns(described), padded=True)
    yield from _queries(f"Queries that read from this {kind}", described["readQueries"])
    yield from _queries(f"Queries that write from this {kind}", described["writeQueries"])
    yield ""
    yield "Local runtime statistics"
    yield "------------------------"
    yield described["statistics"]
    yield described["errorStats"]
    yield f"(Statistics of the local KSQL server interaction with the Kafka topic {described['topic']})"
    yield from _offsets(described["queryOffsetSummaries"])


def _offsets(groups: Sequence[Entity]) -> Iterator[str]:
    """Yields the lines about the offsets of the topics that a query reads."""
    if groups:
        yield ""
        yield "Consumer Groups summary:"
    for group in groups:
        yield ""
        yield f"Consumer Group       : {group['groupId']}"
        for topic in group["topicSummaries"]:
            rows = [[o["partition"], o["logStartOffset"], o["logEndOffset"], o["consumerOffset"]] for o in topic["offsets"]]
            # a topic that is created again may have fewer records than the query has read
            lags = [max(0, end - at) for _, _, end, at in rows]
            yield ""
            yield f"Kafka topic          : {topic['kafkaTopic']}"
            yield f"Max lag              : {max(lags, default=0)}"
            yield ""
            columns = ["Partition", "Start Offset", "End Offset", "Offset", "Lag"]
            yield table(columns, [[*row, lag] for row, lag in zip(rows, lags, strict=True)])


def _queries(title: str, queries: Sequence[Entity]) -> Iterator[str]:
    if queries:
        yield ""
        yield title
        yield "-----------------------------------"
        for query in queries:
            yield f"{query['id']} ({query['state']}) : {_ended(query['queryString']).replace(chr(10), ' ')}"
        yield ""
        yield "For query topology and execution plan please run: EXPLAIN <QueryId>"


def _ended(statement: str) -> str:
    return f"{statement};" if statement and not statement.endswith(";") else statement


def _columns(described: Entity) -> list[list[str]]:
    """Returns the names and types of the columns."""
    role = "(primary key)" if described["type"] == "TABLE" else "(key)"
    if described["windowType"] is not None:
        role += f" (Window type: {described['windowType']})"
    types = [(field["name"], type_of(field["schema"]), field.get("type") == "KEY") for field in described["fields"]]
    return [[name, f"{type:<{TYPE_WIDTH}} {role}" if is_key else type] for name, type, is_key in types]


def type_of(schema: Entity, string: str = "VARCHAR(STRING)") -> str:
    """Returns a type as DESCRIBE shows it. `string`: the name of the type STRING.

    >>> type_of({"type": "ARRAY", "memberSchema": {"type": "DECIMAL", "parameters": {"precision": 4, "scale": 2}}})
    'ARRAY<DECIMAL(4, 2)>'
    """
    name, inner = schema["type"], schema.get("memberSchema")
    if name == "STRING":
        return string
    if name == "STRUCT":
        return "STRUCT<" + ", ".join(f"{f['name']} {type_of(f['schema'], string)}" for f in schema["fields"]) + ">"
    if inner is not None:
        return f"{name}<{'STRING, ' * (name == 'MAP')}{type_of(inner, string)}>"
    numbers = schema.get("parameters", {}).values()
    return f"{name}({', '.join(map(str, numbers))})" if numbers else str(name)
