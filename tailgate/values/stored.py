"""Values as Arrow and DuckDB take them: the stored form of their type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tailgate.lake import sortable
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Value
from tailgate.values.numbers import numerics

INTERVAL_FIELDS = ("months", "days", "micros")


def stored(value: Value, type: Type) -> Any:
    """Converts a value: a numeric has the scale of its type, an interval and a row are dicts, an array a list or a dict. Raises 22003."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return sortable.stored(value) if type.general else numerics.fitted(value, type)
    if not isinstance(value, tuple):
        return value
    if type.multidimensional:
        pair: Any = value
        return {"elements": stored(pair[0], type.array()), "dimensions": list(pair[1])}
    if type.is_array:
        element = type.element
        return [stored(item, element) for item in value]
    if type.name == "record":
        return {f"f{n}": stored(item, f.type) for n, (item, f) in enumerate(zip(value, type.fields, strict=True), 1)}
    return dict(zip(INTERVAL_FIELDS, value, strict=True))
