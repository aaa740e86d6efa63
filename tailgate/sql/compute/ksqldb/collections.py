"""ksqlDB's functions of arrays and maps, which are jsonb.

An element that is NULL is JSON's null. Two elements are equal if their canonical texts are, because all have the same type.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Collections".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.ksqldb.json_texts import ksqldb_json_text
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import Json, dump, load


def _texts(array: str) -> list[str]:
    """Returns the canonical texts of the elements."""
    return list(map(dump, load(array)))


def _array(texts: Sequence[str]) -> str:
    return "[" + ", ".join(texts) + "]"


# --- sets ----------------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="bool")
def ksqldb_array_contains(array: str, item: str) -> bool:
    return item in _texts(array)


@udf("jsonb", to="jsonb")
def ksqldb_array_distinct(array: str) -> str:
    return _array(list(dict.fromkeys(_texts(array))))


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_array_union(left: str, right: str) -> str:
    return _array(list(dict.fromkeys(_texts(left) + _texts(right))))


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_array_except(left: str, right: str) -> str:
    excluded = set(_texts(right))
    return _array([t for t in dict.fromkeys(_texts(left)) if t not in excluded])


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_array_intersect(left: str, right: str) -> str:
    common = set(_texts(right))
    return _array([t for t in dict.fromkeys(_texts(left)) if t in common])


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_array_remove(array: str, item: str) -> str:
    return _array([t for t in _texts(array) if t != item])


# --- order ---------------------------------------------------------------------------------------


def _sorted(array: str, *, descending: bool = False) -> list[Json]:
    """Returns the elements in their natural order, without NULL. Raises 22023 for elements that have none."""
    items = [item for item in load(array) if item is not None]
    if any(not isinstance(item, bool | Decimal | str) for item in items):
        raise InvalidParameterValue("elements of this type have no order")
    return sorted(items, key=lambda item: item.encode("utf-16-be") if isinstance(item, str) else item, reverse=descending)


@udf("jsonb", "bool", to="jsonb")
def ksqldb_array_sort(array: str, descending: bool) -> str:
    """Returns the elements in their natural order, NULL last."""
    items = _sorted(array, descending=descending)
    return dump(items + [None] * (len(load(array)) - len(items)))


@udf("jsonb", to="jsonb")
def ksqldb_array_min(array: str) -> str | None:
    items = _sorted(array)
    return dump(items[0]) if items else None


@udf("jsonb", to="jsonb")
def ksqldb_array_max(array: str) -> str | None:
    items = _sorted(array)
    return dump(items[-1]) if items else None


@udf("jsonb", "int4", "int4", to="jsonb")
def ksqldb_slice(array: str, first: int, last: int) -> str:
    """Returns the elements between two positions, both included. The first element has the position 1."""
    return _array(_texts(array)[max(first - 1, 0) : max(last, 0)])


@udf("jsonb", "text", to="text")
def ksqldb_array_join(array: str, delimiter: str) -> str:
    """Returns the texts of the elements with a delimiter between them; NULL is the text null."""
    return delimiter.join(item if isinstance(item, str) else ksqldb_json_text(dump(item)) for item in load(array))


# --- maps ----------------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_as_map(keys: str, values: str) -> str:
    """Returns the map of two arrays. Keys without a value are NULL."""
    items = load(values)
    return dump({str(key): items[n] if n < len(items) else None for n, key in enumerate(load(keys)) if key is not None})


@udf("jsonb", to="jsonb")
def ksqldb_map_keys(map: str) -> str:
    return dump(list(load(map)))


@udf("jsonb", to="jsonb")
def ksqldb_map_values(map: str) -> str:
    return dump(list(load(map).values()))


@udf("jsonb", "bool", to="jsonb")
def ksqldb_entries(map: str, by_key: bool) -> str:
    """Returns the entries of a map as structures with the fields K and V."""
    entries = load(map)
    keys = sorted(entries, key=lambda key: key.encode("utf-16-be")) if by_key else list(entries)
    return dump([{"K": key, "V": entries[key]} for key in keys])


HISTOGRAM_MAX = 1000  # distinct values; others are ignored


@udf("jsonb", to="jsonb")
def ksqldb_histogram(array: str) -> str:
    """Returns how often each text of an array occurs."""
    counts: Counter[str] = Counter(load(array))
    return dump({value: Decimal(counts[value]) for value in list(counts)[:HISTOGRAM_MAX]})
