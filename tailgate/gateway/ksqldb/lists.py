"""LIST STREAMS, LIST TABLES, SHOW QUERIES and DESCRIBE: the streams, tables and queries of ksqlDB in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tailgate.gateway.catalog.relations.item_status import MaySee
from tailgate.gateway.ksqldb.query_errors import NO_STATUS, Status, waiting
from tailgate.lake.catalog import Catalog, CustomType, Item, MaterializedView, is_transient, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import UndefinedFunction, UndefinedTable
from tailgate.lake.types import TEXT, Field
from tailgate.sql.ksqldb import functions, types
from tailgate.sql.ksqldb.custom_types import definition
from tailgate.sql.ksqldb.declared.refusals import IGNORED, OBEYED
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries import key_names
from tailgate.sql.ksqldb.queries.scopes import column_types, hidden_columns

_TOPIC = (Field("kafka_topic", TEXT), Field("key_format", TEXT), Field("value_format", TEXT))
COLUMNS: dict[str, tuple[Field, ...]] = {
    "streams": (Field("stream_name", TEXT), *_TOPIC),
    "ksqldb tables": (Field("table_name", TEXT), *_TOPIC),
    "queries": (
        Field("query_id", TEXT),
        Field("query_type", TEXT),
        Field("status", TEXT),
        Field("sink_name", TEXT),
        Field("sink_kafka_topic", TEXT),
        Field("query_string", TEXT),
    ),
    "variables": (Field("variable_name", TEXT), Field("value", TEXT)),
    "types": (Field("type_name", TEXT), Field("schema", TEXT)),
    "describe": (Field("field", TEXT), Field("type", TEXT)),
    "ksqldb functions": (Field("function_name", TEXT), Field("category", TEXT)),
    "describe function": (Field("variation", TEXT), Field("returns", TEXT), Field("description", TEXT)),
    "properties": (Field("property", TEXT), Field("value", TEXT), Field("effect", TEXT)),
}


def rows(
    what: str, name: Name | None, items: Sequence[Item], catalog: Catalog, may_see: MaySee, status: Status = NO_STATUS
) -> list[tuple[Any, ...]]:
    """Returns the rows of a list. `name`: the relation of DESCRIBE. Statements are shown to roles that may read the item.

    `status`: the engine's, for the states of queries.
    """
    if what == "describe":
        assert name is not None
        return _described(described_item(name, catalog))
    if what == "ksqldb functions":
        return sorted({(name_of(row), family) for family, of_family in functions.FAMILIES.items() for row in of_family})
    if what == "types":
        return [(item.name, types.text(definition(item))) for item in items if isinstance(item, CustomType)]
    properties = [(item, ksqldb) for item in items if (ksqldb := ksqldb_of(item)) is not None]
    if what == "queries":
        running = [(item, ksqldb) for item, ksqldb in properties if ksqldb.query]
        failing = waiting(status, catalog)
        return [_query(item, catalog, ksqldb, may_see, failing) for item, ksqldb in sorted(running, key=lambda pair: pair[1].number)]
    type = "stream" if what == "streams" else "table"
    lasting = [(i, k) for i, k in properties if k.type == type and not k.into and not is_transient(i)]
    return [(i.name, k.topic, k.key_format, k.value_format) for i, k in lasting]


def described_item(name: Name, catalog: Catalog) -> Item:
    """Returns the relation that DESCRIBE names. Raises 42P01."""
    if catalog.find(name) is None:
        raise UndefinedTable(f"Could not find STREAM/TABLE '{ksqldb_name(name.name)}' in the Metastore", position=name.position)
    return catalog.relation(name)


def described_function(name: str) -> list[tuple[Any, ...]]:
    """Returns the variations of a function. Raises 42883."""
    variants = functions.variants(name.lower())
    if not variants:
        raise UndefinedFunction(f"Can't find any functions with the name '{ksqldb_name(name)}'", hint="LIST FUNCTIONS lists the functions.")
    return list(dict.fromkeys((f"{name_of(row)}({_arguments(row)})", row.returns, row.does) for row in variants))


def name_of(row: functions.Function) -> str:
    """Returns the name of a function without its unit of time."""
    return row.name.partition(":")[0].upper()


def _arguments(row: functions.Function) -> str:
    return f"UNIT, {row.signature}" if ":" in row.name else row.signature


def properties(setting: Callable[[str], str]) -> list[tuple[str, str, str]]:
    """Returns the rows of SHOW PROPERTIES: the properties that SET accepts. `setting`: the value of one that has an effect."""
    obeyed = [(name, setting(name), "obeyed") for name in OBEYED]
    return sorted([*obeyed, *((name, "", "ignored") for name in IGNORED)])


def query_type(item: Item) -> str:
    """Returns the type of the query that maintains an item."""
    return "PUSH" if is_transient(item) else "PERSISTENT"


def query_status(item: Item, failing: Collection[str] = ()) -> str:
    """Returns the status of the query that maintains an item. `failing`: the ids of queries that wait for Kafka or the registry."""
    if isinstance(item, MaterializedView) and (item.failed is not None or item.paused):
        return "ERROR" if item.failed is not None else "PAUSED"
    ksqldb = ksqldb_of(item)
    running = "RUNNING" if ksqldb is None or ksqldb.query not in failing else "ERROR"
    return running if item.ready else "CREATING"


def sink_of(item: Item, ksqldb: KsqldbItem, catalog: Catalog) -> Item | None:
    """Returns the item that the query of an item writes, or None for a push query."""
    if is_transient(item):
        return None
    return catalog[ksqldb.into] if ksqldb.into else item


def _query(item: Item, catalog: Catalog, ksqldb: KsqldbItem, may_see: MaySee, failing: Collection[str]) -> tuple[Any, ...]:
    sink = sink_of(item, ksqldb, catalog)
    statement = ksqldb.statement if may_see(item) else None
    return ksqldb.query, query_type(item), query_status(item, failing), "" if sink is None else sink.name, ksqldb.topic, statement


def _described(item: Item) -> list[tuple[Any, ...]]:
    """Returns the columns of an item and their types. Pseudo columns are left out."""
    ksqldb = ksqldb_of(item)
    keys = key_names(item)
    word = "key" if ksqldb is not None and ksqldb.type == "stream" else "primary key"
    hidden = hidden_columns(item) if ksqldb is not None else ()
    return [
        (name, types.shown(type) + (f" ({word})" if name in keys else ""))
        for name, type in column_types(item).items()
        if name not in hidden
    ]
