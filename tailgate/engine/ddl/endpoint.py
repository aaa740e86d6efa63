"""CREATE ENDPOINT: the endpoint's catalog item. Gateways serve it (`gateway.http`)."""

from __future__ import annotations

import re
from typing import Literal

from tailgate.engine.ddl.drop import Notice, notice
from tailgate.lake.catalog import Catalog, Endpoint
from tailgate.lake.errors import DuplicateObject, FeatureNotSupported, InvalidParameterValue
from tailgate.lake.types import Field
from tailgate.sql.bind import bind_query
from tailgate.sql.new_items import check_columns, normalized
from tailgate.sql.plan.sequences import separated
from tailgate.sql.statements import CreateEndpoint
from tailgate.values.registry import read_text


def create_endpoint(statement: CreateEndpoint, text: str, catalog: Catalog, owner: int) -> tuple[Endpoint | None, list[Notice]]:
    """Returns the item to put into the catalog, or None if IF NOT EXISTS skips it, and notices. `text` is the statement as typed.

    OR REPLACE keeps the id, the owner and the privileges.
    """
    schema, name = catalog.home(statement.name), statement.name.name
    old = catalog.at(name, schema, "endpoint")
    if old is not None and statement.if_not_exists:
        return None, [{**notice(f'endpoint "{name}" already exists, skipping'), "sqlstate": DuplicateObject.sqlstate}]
    if not statement.replace:
        catalog.check_new(name, schema, "endpoint")
    query = bind_query(statement.query, catalog, tuple(p.type for p in statement.parameters))
    if calls := separated(query.plan, 1).calls:
        raise FeatureNotSupported(f"{calls[0].name} in an endpoint is not supported", hint="Requests of GET change nothing.")
    check_columns(query.columns)
    item = Endpoint(
        catalog.next_id if old is None else old.id,
        name,
        depends=query.depends,
        sql=text,
        query=statement.query.text,
        owner=owner if old is None else old.owner,
        schema=schema.id,
        comments={} if old is None else old.comments,
        method="GET",
        path=statement.path,
        parameters=tuple(Field(p.name, type) for p, type in zip(statement.parameters, query.parameters, strict=True)),
        defaults={p.name: p.default for p in statement.parameters if p.optional},
        numbers=_numbers(statement),
    )
    _check_defaults(item)
    _check_path(item, catalog)
    return normalized(item, statement, catalog), []


def _numbers(statement: CreateEndpoint) -> Literal["number", "text"]:
    """Returns the option `numbers`. Raises 0A000 or 22023."""
    numbers: Literal["number", "text"] = "number"
    for name, value in statement.options:
        if name != "numbers":
            raise FeatureNotSupported(f'option "{name}" of an endpoint is not supported', hint="The option is numbers.")
        if value not in ("number", "text"):
            raise InvalidParameterValue(f'invalid value for option "numbers": "{value}"', hint="Use 'number' or 'text'.")
        numbers = "text" if value == "text" else "number"
    return numbers


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
