"""Resolves the names in a statement that changes the catalog: text to `lake.catalog.resolution.Resolution`.

Every identifier of the text is looked up, alone and qualified with the identifier before its dot.
This includes identifiers in strings, because a string may be the body of a function. Some of them
name columns or options and not items, but no item is missed: when the statement is executed, other
names resolve to nothing.

An unqualified name is looked up along the search path, and in the schema in which CREATE would put it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailgate.lake.catalog import SYSTEM_RELATIONS, Catalog, Table
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import Resolution, authority, version
from tailgate.lake.catalog.schemas import TEMPORARY
from tailgate.lake.constraints import primary_key_name, table_of_key
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.tokens import tokens as ksqldb_tokens
from tailgate.sql.lexer.tokens import Token, tokens


def resolve(text: str, catalog: Catalog, base: Catalog) -> Resolution:
    """Resolves the names of a statement in the catalog of a session.

    `base` is the newest catalog, and the result contains only its items. The session's catalog may be
    older, inside a transaction block, and may have temporary views. These hide items of the same name
    and are not in the result.
    """
    item_names = {*SYSTEM_RELATIONS, *(item.name for item in catalog.items.values())}
    identifiers = set(names_in(text))
    names = {name for name in identifiers if name.name in item_names}
    try:
        home = catalog.home(Name("")).name
        names |= {Name(name.name, home) for name in names if name.schema is None}
    except TailgateError:
        pass  # the search path has no schema for new items
    relations: dict[Name, int] = {}
    functions: dict[Name, tuple[int, ...]] = {}
    endpoints: dict[Name, int] = {}
    types: dict[Name, int] = {}
    for name in names:
        item = catalog.find(name)
        if item is not None and base.get(item.id) is not None:
            relations[name] = item.id
        if ids := tuple(function.id for function in catalog.functions(name) if function.id in base.items):
            functions[name] = ids
        endpoint = catalog.find(name, "endpoint")
        if endpoint is not None and endpoint.id in base.items:
            endpoints[name] = endpoint.id
        type = catalog.find(name, "type")
        if type is not None and type.id in base.items:
            types[name] = type.id
    written = {ksqldb_name(name.name) for name in identifiers}
    queries = {id: item.id for id, item in base.queries.items() if id in written}
    keys = {primary_key_name(table) for table in catalog.each(Table) if table.key}
    tables = {name: table_of_key(name, catalog) for name in identifiers if name.name in keys}
    keyed = {name: table.id for name, table in tables.items() if table is not None and table.id in base.items}
    ids = (*relations.values(), *endpoints.values(), *types.values(), *queries.values(), *keyed.values())
    ids_of_names = {*ids, *(id for of_name in functions.values() for id in of_name)}
    path = tuple(p for p in catalog.path if not p.startswith(TEMPORARY))
    versions = {id: version(base[id]) for id in sorted(ids_of_names)}
    digest = authority(base.roles, base.schemas, base.access)
    return Resolution(path, relations, functions, versions, digest, endpoints, queries, types, keyed)


def names_in(text: str) -> Iterator[Name]:
    """Yields the names of identifiers in a text and in its strings, qualified and unqualified.

    >>> sorted(str(name) for name in names_in("GRANT SELECT ON s.t TO r"))
    ['grant', 'on', 'r', 's', 's.t', 'select', 't', 'to']
    """
    row = tokens(text)
    yield from _names(row)
    if "\\" in text or "`" in text or '"' in text:  # a statement of ksqlDB has other names in quotes, and a \\ at a line's end
        yield from _names(ksqldb_tokens(text))
    for token in row:
        if token.kind == "string":
            yield from _names(tokens(token.value))


def _names(row: tuple[Token, ...]) -> Iterator[Name]:
    for i, token in enumerate(row):
        if token.kind in ("word", "quoted"):
            yield Name(token.value)
            if i + 2 < len(row) and row[i + 1].value == "." and row[i + 2].kind in ("word", "quoted"):
                yield Name(row[i + 2].value, token.value)
