"""Text of a Query or Parse to statements, remembered by text: clients send the same few over and over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from gateway.catalog import catalog_tree, is_catalog_query
from lake.catalog import Catalog
from lake.errors import TailgateError
from sql.statements import Empty, QueryText, Select, Statement, StatementText, parse, split

KEPT = 1000
KEPT_BYTES_MAX = 20_000  # longer texts are read each time: a thousand of them would be 20 MB and more as trees

INLINE_CHARACTERS_MAX = 8_000  # longer texts are read and bound beside the event loop, on a thread of their own, one at a time: 5-10 ms
_ASIDE = ThreadPoolExecutor(1, "tailgate-parse")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Nothing:
    """A statement that has nothing to do here, and succeeds: nobody listens, so UNLISTEN has nobody to leave."""

    tag: str


_NOTHING = re.compile(r"\s*unlisten\s+(\*|\w+)\s*", re.IGNORECASE)
_SECRET = re.compile(r"\b(password|secret)\b", re.IGNORECASE)  # is kept nowhere
Known = Statement | Nothing


async def read(text: str) -> tuple[tuple[Known, StatementText], ...]:
    """`statements`, which others need not wait for if the text is long."""
    return await beside(text, statements, text)


async def beside(text: str, work: Callable[..., Result], *arguments: Any) -> Result:
    """What `work` gives, which takes as long as the text is: beside the event loop if that is long."""
    if len(text) <= INLINE_CHARACTERS_MAX:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_ASIDE, work, *arguments)


def statements(text: str) -> tuple[tuple[Known, StatementText], ...]:
    """All of a text, in order, without empty ones. Nothing of a text runs if any of it does not parse, as in PostgreSQL."""
    return _kept(text) if len(text) <= KEPT_BYTES_MAX and not _SECRET.search(text) else _read(text)


def _read(text: str) -> tuple[tuple[Known, StatementText], ...]:
    out: list[tuple[Known, StatementText]] = []
    for part in split(text):
        if _NOTHING.fullmatch(part.text):
            out.append((Nothing("UNLISTEN"), part))
            continue
        try:
            statement = parse(part.text)
        except TailgateError as error:
            tree = catalog_tree(part.text)
            if tree is not None and is_catalog_query(tree, Catalog()):
                # what clients ask pg_catalog needs more of PostgreSQL's grammar than what users write
                out.append((Select(QueryText(part.text, 0, tree)), part))
                continue
            if error.position is not None:
                error.position += part.position
            raise
        if not isinstance(statement, Empty):
            out.append((statement, part))
    return tuple(out)


_kept = lru_cache(KEPT)(_read)
