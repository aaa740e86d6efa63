"""The text of entities of connectors.

Source: ksqlDB 0.29, documentation, "CREATE CONNECTOR", "DESCRIBE CONNECTOR", "SHOW CONNECTORS".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.ksql.tables import table

Entity = dict[str, Any]


def listed(value: Entity) -> str:
    """Returns the text of SHOW CONNECTORS."""
    rows = [[c["name"], c["type"].upper(), c["className"], c["state"]] for c in value["connectors"]]
    return table(["Connector Name", "Type", "Class", "Status"], rows)


def plugins(value: Entity) -> str:
    """Returns the text of SHOW CONNECTOR PLUGINS."""
    return table(["Class", "Type", "Version"], [[p["className"], p["type"].upper(), p["version"]] for p in value["connectorsPlugins"]])


def described(value: Entity) -> str:
    """Returns the text of DESCRIBE CONNECTOR."""
    return "\n".join(_described(value))


def _described(value: Entity) -> Iterator[str]:
    status = value["status"]
    connector = status["connector"]
    yield f"Name                 : {status['name']}"
    yield f"Class                : {value['connectorClass']}"
    yield f"Type                 : {status['type']}"
    yield f"State                : {connector['state']}"
    yield f"WorkerId             : {connector['worker_id']}"
    if connector.get("trace"):
        yield f"Trace                : {connector['trace']}"
    if status["tasks"]:
        yield ""
        yield table(["Task ID", "State", "Error Trace"], [[task["id"], task["state"], task.get("trace") or ""] for task in status["tasks"]])
    if value["sources"]:
        yield ""
        yield table(["KSQL Source Name", "Kafka Topic", "Type"], [[s["name"], s["topic"], s["type"]] for s in value["sources"]])
    if value["topics"]:
        yield ""
        yield table(["Related Topics"], [[topic] for topic in value["topics"]])
