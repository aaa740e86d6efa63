"""CREATE ENDPOINT: the endpoint's catalog item. Gateways serve it (`gateway.http`).

The first endpoint that writes is created with the table of all Idempotency-Keys, which remains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from tailgate.engine.ddl.durations import DAY_MS, bounded_milliseconds
from tailgate.lake.catalog import Catalog, Endpoint, Table
from tailgate.lake.catalog.formats import IDEMPOTENCY_KEYS, IDEMPOTENCY_KEYS_KEY
from tailgate.lake.catalog.names import quoted
from tailgate.lake.catalog.schemas import ENDPOINTS, ENDPOINTS_ID, IDEMPOTENCY_KEYS_TABLE, SYSTEM, TAILGATE
from tailgate.lake.errors import DuplicateObject, FeatureNotSupported, InvalidParameterValue
from tailgate.lake.types import Field
from tailgate.sql.bind import bind_query, bind_write
from tailgate.sql.drop import Notice, notice
from tailgate.sql.new_items import check_built_in, check_columns, normalized
from tailgate.sql.plan import Query
from tailgate.sql.plan.session_calls import separated
from tailgate.sql.statements import CreateEndpoint
from tailgate.sql.statements.writes import WriteText
from tailgate.sql.system_queries import reads_system
from tailgate.sql.tables.definition import type_name
from tailgate.values.registry import read_text

KEYS_MS, KEYS_MAX_MS = DAY_MS, 7 * DAY_MS  # for which an Idempotency-Key is kept, without and with the option


def create_endpoint(
    statement: CreateEndpoint, text: str, catalog: Catalog, owner: int
) -> tuple[tuple[Endpoint] | tuple[Endpoint, Table] | None, list[Notice]]:
    """Returns the items to put into the catalog, or None if IF NOT EXISTS skips them, and notices. `text` is the statement as typed.

    OR REPLACE keeps the id, the owner and the privileges.
    """
    schema, name = catalog.home(statement.name), statement.name.name
    old = catalog.at(name, schema, "endpoint")
    if old is not None and statement.if_not_exists:
        return None, [{**notice(f'endpoint "{name}" already exists, skipping'), "sqlstate": DuplicateObject.sqlstate}]
    if not statement.replace:
        catalog.check_new(name, schema, "endpoint")
    for parameter in statement.parameters:
        check_built_in(parameter.type, catalog, "a parameter", parameter.position)
    query = _bound(statement, catalog)
    if reads_system(query.plan):
        raise FeatureNotSupported(f"an endpoint over the schema {TAILGATE} is not supported")
    check_columns(query.columns)
    options = _options(statement)
    item = Endpoint(
        catalog.next_id if old is None else old.id,
        name,
        depends=query.depends,
        sql=text,
        query=statement.query.text,
        owner=owner if old is None else old.owner,
        schema=schema.id,
        comments={} if old is None else old.comments,
        method=statement.method,
        path=statement.path,
        parameters=tuple(Field(p.name, type) for p, type in zip(statement.parameters, query.parameters, strict=True)),
        defaults={p.name: p.default for p in statement.parameters if p.optional},
        numbers=options.numbers,
        keys_ms=options.keys_ms,
    )
    _check_defaults(item)
    _check_path(item, catalog)
    created = normalized(item, statement, catalog)
    if item.method == "GET" or catalog.at(IDEMPOTENCY_KEYS_TABLE, SYSTEM[ENDPOINTS_ID]) is not None:
        return (created,), []
    return (created, _keys_table(max(catalog.next_id, item.id + 1))), []


def _bound(statement: CreateEndpoint, catalog: Catalog) -> Query:
    """Returns the bound query. Raises 0A000 for functions of sequences that it cannot call."""
    types = tuple(p.type for p in statement.parameters)
    if isinstance(statement.query, WriteText):
        query = bind_write(statement.query.statement, catalog, types)
        if other := next((c for c in separated(query.plan, 1).all_calls if not c.is_reservable), None):
            raise FeatureNotSupported(f"{other.name} in an endpoint is not supported", hint="A request has no session.")
        return query
    query = bind_query(statement.query, catalog, types)
    if calls := separated(query.plan, 1).all_calls:
        raise FeatureNotSupported(f"{calls[0].name} in an endpoint of GET is not supported", hint="Requests of GET change nothing.")
    return query


def _keys_table(id: int) -> Table:
    """Returns the table of the Idempotency-Keys."""
    name = IDEMPOTENCY_KEYS_TABLE
    columns = ", ".join(f"{quoted(c.name)} {type_name(c.type)} NOT NULL" for c in IDEMPOTENCY_KEYS)
    key = ", ".join(IDEMPOTENCY_KEYS[k].name for k in IDEMPOTENCY_KEYS_KEY)
    sql = f"CREATE TABLE {ENDPOINTS}.{name} ({columns}, PRIMARY KEY ({key}))"
    return Table(id, name, IDEMPOTENCY_KEYS, IDEMPOTENCY_KEYS_KEY, stored=True, sql=sql, schema=ENDPOINTS_ID, constraint=f"{name}_pkey")


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of an endpoint."""

    numbers: Literal["number", "text"] = "number"
    keys_ms: int = 0


def _options(statement: CreateEndpoint) -> _Options:
    """Returns the options. Raises 0A000, 22007 or 22023."""
    options = _Options(keys_ms=0 if statement.method == "GET" else KEYS_MS)
    for name, value in statement.options:
        if name == "numbers":
            if value not in ("number", "text"):
                raise InvalidParameterValue(f'invalid value for option "numbers": "{value}"', hint="Use 'number' or 'text'.")
            options = replace(options, numbers="text" if value == "text" else "number")
        elif name == "idempotency_keys" and statement.method != "GET":
            options = replace(options, keys_ms=bounded_milliseconds(f'value for option "{name}"', str(value), KEYS_MAX_MS))
        else:
            hint = "The options are numbers and, for other methods than GET, idempotency_keys."
            raise FeatureNotSupported(f'option "{name}" of an endpoint is not supported', hint=hint)
    return options


def _check_defaults(item: Endpoint) -> None:
    """Raises an error if a default is not a value of its parameter's type."""
    types = {p.name: p.type for p in item.parameters}
    for name, default in item.defaults.items():
        if default is not None:
            read_text(default, types[name])


def _check_path(item: Endpoint, catalog: Catalog) -> None:
    """Raises 42710 if another endpoint answers the same requests."""
    for other in catalog.each(Endpoint):
        if other.id != item.id and (other.method, _pattern(other.path)) == (item.method, _pattern(item.path)):
            raise DuplicateObject(f'endpoint "{other.name}" already has the path {other.path}')


def _pattern(path: str) -> str:
    """Returns a path without the names of its parameters."""
    return re.sub(r":\w+", ":", path)
