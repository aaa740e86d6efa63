"""Two relations, and their ticks, for the checks of the rules of writers and readers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tailgate.lake.log import segments
from tailgate.lake.readers import reading
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.lake.writer import retention
from tailgate.lake.writer.log_writer import Writer
from tests.lake.relations import History, changes, item

COLUMNS = (Field("a", INT8), Field("b", TEXT))
KEYED = item(16384, COLUMNS, (0,))
BAG = item(16385, COLUMNS, None)


def rows(*pairs: tuple[tuple[Any, Any], int]) -> pa.Table:
    return changes(BAG, pairs)


def write(writer: Writer, count: int = 1, **fields: Any) -> History:
    """Runs ticks, each of which adds rows to both relations."""
    history = History()
    for _ in range(count):
        n = writer.newest.n + 1
        history.append(writer, {KEYED.id: rows(((n, "k"), 1)), BAG.id: rows(((n, "b"), 2), ((None, "all"), 1))}, **fields)
    return history


@contextlib.contextmanager
def short_history(*, since_ms: int = 0) -> Iterator[None]:
    """Makes everything old at once, with segments of three entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "RETAIN_HISTORY_MS", since_ms)
        patch.setattr(segments, "ENTRIES", 3)
        patch.setattr(retention, "ENTRIES", 3)
        patch.setattr(retention, "AGE_MIN_MS", 0)
        yield
