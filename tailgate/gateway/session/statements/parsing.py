"""Parses the text of a Query or Parse message, with a cache: clients send the same few texts repeatedly."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, cast

from tailgate.gateway.catalog.catalog_query import catalog_tree, is_catalog_query
from tailgate.gateway.resources.budgets import Budget, Cache
from tailgate.gateway.workers.pool import Workers
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.statements import (
    Delete,
    Empty,
    Insert,
    Merge,
    QueryText,
    Select,
    Statement,
    StatementText,
    Update,
    WithWrites,
    parse,
    split,
)
from tailgate.sql.statements.parsing import names_database, without_database

KEPT_BYTES = 32 << 20  # of cached statements
KEPT_CHARACTERS_MAX = 20_000  # longer texts are not cached
TREE_FACTOR = 100  # approximate bytes of a parse tree per character of its text
LONG_CHARACTERS = 8_000  # longer texts are always parsed in another process: they would block the event loop


@dataclass(frozen=True, slots=True)
class LongWrite:
    """A statement that writes, which was parsed in another process, and is also bound there, from its text.

    `table`: the target of an INSERT.
    """

    verb: str
    table: Name | None = None


_SECRET = re.compile(r"\b(password|secret)\b", re.IGNORECASE)  # such texts are not cached
ParsedStatement = Statement | LongWrite
Parts = tuple[tuple[ParsedStatement, StatementText], ...]


class StatementCache:
    """A cache of parsed texts. As in PostgreSQL, no statement of a text runs if one of them cannot be parsed."""

    def __init__(self, workers: Workers, budget: Budget) -> None:
        self._workers = workers
        self.cache: Cache[str, Parts] = Cache(budget, KEPT_BYTES)

    def find(self, text: str) -> Parts | None:
        return self.cache.get(text)

    async def read(self, text: str, dialect: Dialect = "auto", database: str = "") -> Parts:
        """Returns all statements of a text in order, without empty ones. Raises 42601 for a syntax error.

        `database`: the current one, which names may have as their first part.
        """
        database = database if names_database(text, database) else ""
        key = text if dialect == "auto" and not database else f"{dialect}\0{database}\0{text}"
        parts = self.cache.get(key)
        if parts is None:
            long, in_worker = len(text) > LONG_CHARACTERS, partial(read_in_worker, text, dialect, database)
            parts = await self._workers.run_bounded(read, text, dialect, database, in_worker=in_worker, long=long)
            if len(text) <= KEPT_CHARACTERS_MAX and not _SECRET.search(text):
                self.cache.put(key, parts, len(text) * TREE_FACTOR)
        return parts


def read(text: str, dialect: Dialect = "auto", database: str = "") -> Parts:
    """Splits and parses a text. Positions in errors refer to the whole text."""
    if database:
        text = without_database(text, database)
    out: list[tuple[ParsedStatement, StatementText]] = []
    for part in split(text, dialect):
        try:
            statement = parse(part.text, dialect)
        except TailgateError as error:
            tree = catalog_tree(part.text)
            if tree is not None and is_catalog_query(tree, Catalog()):
                # Clients' queries of pg_catalog use more of PostgreSQL's grammar than our parser knows.
                out.append((Select(QueryText(part.text, 0, tree)), part))
                continue
            if error.position is not None:
                error.position += part.position
            raise
        if not isinstance(statement, Empty):
            out.append((statement, part))
    return tuple(out)


def read_in_worker(text: str, dialect: Dialect = "auto", database: str = "") -> Parts:
    """Parses a text in another process. Omits the parse trees of writes, which are larger than the text."""
    return tuple((cast(ParsedStatement, _light(statement)), part) for statement, part in read(text, dialect, database))


def _light(value: Any) -> Any:
    if isinstance(value, WithWrites):
        return LongWrite("WITH")
    if isinstance(value, Insert | Update | Delete | Merge):
        return LongWrite(type(value).__name__.upper(), value.table if isinstance(value, Insert) else None)
    if is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: getattr(value, f.name) for f in fields(value) if f.name in ("statement", "target")}
        return replace(value, **{name: _light(part) for name, part in inner.items()}) if inner else value
    return value
