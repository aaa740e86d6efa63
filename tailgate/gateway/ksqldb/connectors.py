"""Connectors of Kafka Connect: the rows of SHOW CONNECTORS and SHOW CONNECTOR PLUGINS, and the entity of DESCRIBE CONNECTOR.

The engine answers these statements with entities of ksqlDB's HTTP API. DESCRIBE adds the streams and tables over the connector's topics.
"""

from __future__ import annotations

from typing import Any

from tailgate.gateway.catalog.relations.item_status import MaySee
from tailgate.gateway.ksqldb.entities import relations_over
from tailgate.gateway.ksqldb.fields import Entity
from tailgate.lake.catalog import Catalog
from tailgate.lake.types import TEXT, Field

_LIST = (Field("connector_name", TEXT), Field("type", TEXT), Field("class", TEXT), Field("status", TEXT))
COLUMNS: dict[str, tuple[Field, ...]] = {
    **dict.fromkeys(("connectors", "source connectors", "sink connectors"), _LIST),
    "connector plugins": (Field("class", TEXT), Field("type", TEXT), Field("version", TEXT)),
    "describe connector": (Field("description", TEXT),),
}


def rows(entity: Entity) -> list[tuple[Any, ...]]:
    """Returns the rows of a list. `entity`: the engine's answer."""
    if entity["@type"] == "connector_list":
        return [(c["name"], c["type"], c["className"], c["state"]) for c in entity["connectors"]]
    return [(p["className"], p["type"], p["version"]) for p in entity["connectorsPlugins"]]


def described(entity: Entity, catalog: Catalog, may_see: MaySee) -> Entity:
    """Returns the entity of DESCRIBE CONNECTOR with the streams and tables over the connector's topics."""
    return {**entity, "sources": relations_over(entity["topics"], catalog, may_see)}
