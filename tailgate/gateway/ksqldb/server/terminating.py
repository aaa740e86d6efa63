"""POST /ksql/terminate: terminates the user's queries, and deletes topics of derived streams and tables.

    deleteTopicList: names and patterns ──► the derived items with such topics ──► TERMINATE ALL; DROP … DELETE TOPIC; …

A topic is deleted with its stream or table, after those that read it. Nothing is terminated if the user does not own one of them.

Source: ksqlDB 0.29, documentation, "Terminate a cluster".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.asgi.sessions import Caller
from tailgate.gateway.ksqldb.server.http import errors
from tailgate.gateway.ksqldb.server.http.errors import ApiError, Document
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.server.statements import Statements
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import parser
from tailgate.sql.ksqldb.names import catalog_name, quoted
from tailgate.sql.ksqldb.statements import CreateAs

MEMBER = "deleteTopicList"
# the names of relations in the search path that the user does not own
FOREIGN = "SELECT relname FROM pg_class WHERE relname IN ({}) AND pg_table_is_visible(oid) AND NOT pg_has_role(relowner, 'USAGE')"
PATTERNS_MAX = 1_000
PATTERN_MAX = 1_000  # characters


async def terminate(statements: Statements, caller: Caller, request: Mapping[str, Any]) -> list[Document]:
    """Terminates the queries of a user and deletes topics. Returns the entities of TERMINATE. Raises ApiError."""
    patterns = _patterns(request)
    await asyncio.to_thread(matching, patterns, [""])
    descriptions = await statements.run(caller, StatementRequest("DESCRIBE STREAMS; DESCRIBE TABLES;")) if patterns else []
    sources = [source for entity in descriptions for source in entity["sourceDescriptions"] if _is_derived(source)]
    topics = set(await asyncio.to_thread(matching, patterns, [source["topic"] for source in sources]))
    ended = [source for source in sources if source["topic"] in topics]
    await _check_owner(statements, caller, ended)
    entities = await statements.run(caller, StatementRequest("TERMINATE ALL;"))
    await _drop(statements, caller, ended)
    return [{**entity, "statementText": "TERMINATE CLUSTER;"} for entity in entities]


def _patterns(request: Mapping[str, Any]) -> list[str]:
    """Returns the names and patterns of a request. Raises 400."""
    patterns = request.get(MEMBER) or []
    if not isinstance(patterns, list) or not all(isinstance(p, str) and len(p) <= PATTERN_MAX for p in patterns):
        raise ApiError(errors.BAD_REQUEST, f"{MEMBER} must be an array of texts of at most {PATTERN_MAX} characters")
    if len(patterns) > PATTERNS_MAX:
        raise ApiError(errors.BAD_REQUEST, f"{MEMBER} may have at most {PATTERNS_MAX} elements")
    return patterns


def matching(patterns: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Returns the topics whose whole name matches one of the regular expressions. Raises 400 for an invalid one.

    >>> matching(["A", "B.*"], ["A", "AB", "BC"])
    ['A', 'BC']
    """
    names = pa.array(topics, pa.string())
    one = "|".join(f"(?:{pattern})" for pattern in patterns)
    try:  # Arrow's regular expressions are RE2's, whose time and size are bounded
        return list(names.filter(pc.match_substring_regex(names, f"^(?:{one})$")).to_pylist())
    except pa.ArrowInvalid:
        raise ApiError(errors.BAD_REQUEST, f"{MEMBER} has an invalid regular expression, or they are too large") from None


def _is_derived(source: Document) -> bool:
    """Returns whether a stream or table has a query. The statement of another role's is empty."""
    return bool(source["statement"]) and isinstance(parser.parse(source["statement"]), CreateAs)


async def _check_owner(statements: Statements, caller: Caller, sources: Sequence[Document]) -> None:
    """Raises 403 if the user does not own one of the items."""
    if not sources:
        return
    names = ", ".join(quoted_text(catalog_name(source["name"])) for source in sources)
    rows = await statements.select(caller, FOREIGN.format(names))
    if rows:
        raise ApiError(errors.FORBIDDEN, f"must be owner of materialized view {json.loads(rows[0][0])}")


async def _drop(statements: Statements, caller: Caller, sources: Sequence[Document]) -> None:
    """Drops items with their topics, each after those that read it. Raises the error of one that cannot be dropped."""
    while sources:
        failures = list[tuple[Document, ApiError]]()
        for source in sources:
            try:
                text = f"DROP {source['type']} {quoted(catalog_name(source['name']))} DELETE TOPIC;"
                await statements.run(caller, StatementRequest(text))
            except ApiError as error:
                failures.append((source, error))
        if len(failures) == len(sources):
            raise failures[0][1]
        sources = [source for source, _ in failures]
