"""Translates the properties of a connector for the plugins that are installed.

    connector.class    MySqlConnector as MariaDbConnector, if only the latter is installed
    converters         Confluent's AvroConverter as Apicurio's, if only the latter is installed
    Debezium 1.x       its names as those of 2.0 and later, if the plugin does not know the former

All other properties pass as they are.

Source: Debezium, "Release notes", 1.3 and 2.0; documentation of the connectors for MySQL and MariaDB.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tailgate.formats.converters import APICURIO_AVRO, CONFLUENT_AVRO, with_installed_converters

CLASS = "connector.class"
CLASSES = {"io.debezium.connector.mysql.MySqlConnector": "io.debezium.connector.mariadb.MariaDbConnector"}
SERVER = "database.server.name"
NAMES = {
    SERVER: "topic.prefix",
    **{f"{what}.whitelist": f"{what}.include.list" for what in ("database", "schema", "table", "column")},
    **{f"{what}.blacklist": f"{what}.exclude.list" for what in ("database", "schema", "table", "column")},
}
PREFIXES = {"database.history.": "schema.history.internal."}
# The default of Debezium 1.x for a property of later versions. Avro needs it for names such as `call-center`.
ADJUSTMENT, ADJUSTMENT_OF_1 = "schema.name.adjustment.mode", "avro"


@dataclass(frozen=True, slots=True)
class Translation:
    """The properties for Kafka Connect, and a sentence for each that differs from the statement's."""

    config: dict[str, str]
    notices: tuple[str, ...]


def plugin_of(name: str, installed: Collection[str]) -> str | None:
    """Returns the class of an installed plugin, whose name may be short; None if it is not installed.

    >>> plugin_of("FileStreamSource", ["org.apache.kafka.connect.file.FileStreamSourceConnector"])
    'org.apache.kafka.connect.file.FileStreamSourceConnector'
    """
    names = (name, f"{name}Connector")
    return next((plugin for plugin in installed if name == plugin or plugin.rpartition(".")[2] in names), None)


def installed_class(name: str, installed: Collection[str]) -> str:
    """Returns a connector's class, or the one that replaces it if only that is installed."""
    other = CLASSES.get(name)
    return other if other is not None and plugin_of(name, installed) is None and other in installed else name


def translated(config: Mapping[str, str], installed: Collection[str], names: Collection[str]) -> Translation:
    """Returns the properties for the installed plugins. `installed`: the classes of all plugins. `names`: of the plugin's properties."""
    result, sides = with_installed_converters(config, installed)
    notices = [f"{side} {CONFLUENT_AVRO} is not installed, {APICURIO_AVRO} is used" for side in sides]
    name = result.get(CLASS, "")
    if (other := installed_class(name, installed)) != name:
        result[CLASS] = other
        notices.append(f"{CLASS} {name} is not installed, {other} is used")
    is_old = False
    for old in list(result):
        new = _renamed(old, names)
        if new is None:
            continue
        is_old, value = True, result.pop(old)
        if new not in result:
            result[new] = value
        notices.append(f"property {old} is passed as {new}")
    if is_old and ADJUSTMENT in names and ADJUSTMENT not in result:
        result[ADJUSTMENT] = ADJUSTMENT_OF_1
        notices.append(f"property {ADJUSTMENT} is {ADJUSTMENT_OF_1}, the default of Debezium 1.x")
    return Translation(result, tuple(notices))


def _renamed(name: str, names: Collection[str]) -> str | None:
    """Returns the name by which the plugin knows a property, None for its own name. `names`: of the plugin's properties."""
    prefix = next((p for p in PREFIXES if name.startswith(p)), None)
    if prefix is not None:  # the plugin does not list these properties
        is_new = NAMES[SERVER] in names and SERVER not in names
        return PREFIXES[prefix] + name.removeprefix(prefix) if is_new else None
    new = NAMES.get(name)
    return new if new in names and name not in names else None
