"""The default of a column in ALTER TABLE, and errors without a position."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field
from tailgate.sql.binder.sequence_calls import with_ids
from tailgate.sql.binder.writes.targets import default_of

Result = TypeVar("Result")


def default_by_name(column: Field, text: str | None, catalog: Catalog) -> dict[str, str]:
    """Returns the default of a column by its name."""
    text = None if text is None else with_ids(text, catalog)
    placeless(lambda: default_of(column, text))
    return {} if text is None else {column.name: text}


def placeless(make: Callable[[], Result]) -> Result:
    """Returns the result of a function. Its errors have no position, as in PostgreSQL."""
    try:
        return make()
    except TailgateError as error:
        error.position = None
        raise
