"""CREATE CONNECTOR, DROP CONNECTOR, SHOW CONNECTORS, SHOW CONNECTOR PLUGINS and DESCRIBE CONNECTOR.

Kafka Connect keeps the connectors: the catalog has no item for them. If it is not reachable, only these statements fail (08006).
The results are the entities of ksqlDB's HTTP API, without `statementText` and `warnings`.

Source: ksqlDB 0.29, documentation, "CREATE CONNECTOR", "DESCRIBE CONNECTOR", "SHOW CONNECTORS".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.connect import secrets
from tailgate.engine.runtime.connect.client import Worker
from tailgate.engine.runtime.connect.translation import CLASS, installed_class, plugin_of, translated
from tailgate.lake.errors import DuplicateObject, InvalidParameterValue, TailgateError, UndefinedObject, of
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import CreateConnector, DropConnector, PropertyValue

CONNECTOR_TYPES = ("source", "sink")
RUNNING = "RUNNING"
Entity = dict[str, Any]


class Connectors:
    """Executes the statements. Thread safe."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    def change(self, statement: CreateConnector | DropConnector) -> list[str]:
        """Creates or drops a connector. Returns notices. Raises 42710 if it exists, 42704 if it does not, 22023, 08006."""
        worker, name = Worker(self._endpoints.workers()), ksqldb_name(statement.name)
        if isinstance(statement, CreateConnector):
            return _create(worker, name, statement)
        try:
            worker.drop(name)
        except UndefinedObject:
            if not statement.if_exists:
                raise
            return [f"Connector {name} does not exist, skipping"]
        return []

    def shown(self, what: str, name: str) -> Entity:
        """Returns the entity of a SHOW or DESCRIBE (`sql.statements.queries.OF_CONNECTORS`). `name`: the connector of DESCRIBE."""
        worker = Worker(self._endpoints.workers())
        if what == "describe connector":
            return _description(worker, name)
        if what == "connector plugins":
            plugins = [p for p in worker.plugins() if p["type"] in CONNECTOR_TYPES]
            listed = [{"className": p["class"], "type": p["type"], "version": p.get("version")} for p in plugins]
            return {"@type": "connector_plugins_list", "connectorsPlugins": sorted(listed, key=lambda p: str(p["className"]))}
        types = CONNECTOR_TYPES if what == "connectors" else (what.split()[0],)
        connectors = sorted(worker.connectors().items())
        return {
            "@type": "connector_list",
            "connectors": [_listed(name, connector) for name, connector in connectors if connector["info"].get("type") in types],
        }


def _create(worker: Worker, name: str, statement: CreateConnector) -> list[str]:
    if statement.if_not_exists and worker.exists(name):
        return [f"Connector {name} already exists, skipping"]
    config = {property: _text(value) for property, value in statement.properties}
    config.pop("name", None)
    if CLASS not in config:
        raise InvalidParameterValue(f'connector {name} has no property "{CLASS}"', hint=f"WITH ('{CLASS}' = '…', …).")
    installed = [str(plugin["class"]) for plugin in worker.plugins()]
    plugin = plugin_of(installed_class(config[CLASS], installed), installed)
    if plugin is None:
        raise UndefinedObject(f'connector class "{config[CLASS]}" is not installed', hint="SHOW CONNECTOR PLUGINS lists the classes.")
    definitions = worker.definitions(plugin)
    translation = translated(config, installed, definitions)
    try:
        worker.create(name, translation.config)
    except DuplicateObject:
        if not statement.if_not_exists:
            raise
        return [f"Connector {name} already exists, skipping"]
    except TailgateError as error:
        raise _without_secrets(error, config, definitions) from None
    return list(translation.notices)


def _text(value: PropertyValue) -> str:
    """Returns the value of a property as Kafka Connect expects it: all values are texts."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _without_secrets(error: TailgateError, config: Mapping[str, str], definitions: Mapping[str, str]) -> TailgateError:
    return of(error.sqlstate, secrets.masked(error.message, config, definitions), hint=error.hint)


def _listed(name: str, connector: Mapping[str, Any]) -> Entity:
    """Returns an element of `connector_list`. `connector`: its `info` and `status`."""
    info, status = connector["info"], connector["status"]
    tasks = status.get("tasks", ())
    running = sum(task["state"] == RUNNING for task in tasks)
    state = status["connector"]["state"]
    if state == RUNNING:
        state = f"{RUNNING if running else 'WARNING'} ({running}/{len(tasks)} tasks RUNNING)"
    return {"name": name, "type": info.get("type"), "className": info["config"].get(CLASS), "state": state}


def _description(worker: Worker, name: str) -> Entity:
    """Returns the entity of DESCRIBE CONNECTOR. Error traces have no confidential values."""
    config, status = worker.config(name), worker.status(name)
    try:
        definitions = worker.definitions(config.get(CLASS, ""))
    except TailgateError:  # the plugin has been removed
        definitions = {}

    def state(part: Mapping[str, Any]) -> Entity:
        trace = part.get("trace")
        return {**part, "trace": None if trace is None else secrets.masked(str(trace), config, definitions)}

    return {
        "@type": "connector_description",
        "connectorClass": config.get(CLASS),
        "status": {
            "name": name,
            "connector": state(status["connector"]),
            "tasks": [state(task) for task in status.get("tasks", ())],
            "type": status.get("type"),
        },
        "sources": [],
        "topics": worker.topics(name),
    }
