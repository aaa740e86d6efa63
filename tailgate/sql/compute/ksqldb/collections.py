"""ksqlDB's functions of arrays and maps, which are jsonb.

An element that is NULL is JSON's null. Two elements are equal if their canonical texts are, because all have the same type.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Collections".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

from tailgate.lake.errors import InvalidParameterValue, NullValueNotAllowed, ProgramLimitExceeded
from tailgate.sql.compute.ksqldb.json_texts import ksqldb_json_text
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import Json, dump, invalid, load


def _elements(array: str) -> list[Json]:
    """Returns the elements of an array. Raises 22P02 for another value."""
    value = load(array)
    if not isinstance(value, list):
        raise invalid()
    return value


def _entries(map: str) -> dict[str, Json]:
    """Returns the entries of a map. Raises 22P02 for another value."""
    value = load(map)
    if not isinstance(value, dict):
        raise invalid()
    return value


def _texts(array: str) -> list[str]:
    """Returns the canonical texts of the elements."""
    return list(map(dump, _elements(array)))


def _text(value: Json) -> str:
    """Returns a string, or the canonical text of another value."""
    return value if isinstance(value, str) else dump(value)


def _array(texts: Sequence[str]) -> str:
    return "[" + ", ".join(texts) + "]"


@udf("jsonb", to="text[]")
def ksqldb_elements(array: str) -> list[str]:
    """Returns the elements of an array, each as jsonb."""
    return _texts(array)


@udf("text[]", to="jsonb")
def ksqldb_array(elements: Sequence[str | None]) -> str:
    """Returns the array of elements that are jsonb; JSON's null for NULL."""
    return dump([None if element is None else load(element) for element in elements])


# --- sets ----------------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="bool")
def ksqldb_array_contains(array: str, item: str) -> bool:
    return item in _texts(array)


@udf("jsonb", to="jsonb")
def ksqldb_array_distinct(array: str) -> str:
    return _array(list(dict.fromkeys(_texts(array))))


@udf("jsonb", to="jsonb")
def ksqldb_set(array: str) -> str:
    """Returns the distinct elements of an array that an aggregate has made; in a view, the aggregate then keeps only these."""
    return ksqldb_array_distinct(array)


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
    items = [item for item in _elements(array) if item is not None]
    if any(not isinstance(item, bool | Decimal | str) for item in items) or len(set(map(type, items))) > 1:
        raise InvalidParameterValue("elements of this type have no order")
    return sorted(items, key=lambda item: item.encode("utf-16-be") if isinstance(item, str) else item, reverse=descending)


@udf("jsonb", "bool", to="jsonb")
def ksqldb_array_sort(array: str, descending: bool) -> str:
    """Returns the elements in their natural order, NULL last."""
    items = _sorted(array, descending=descending)
    return dump(items + [None] * (len(_elements(array)) - len(items)))


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
    return delimiter.join(item if isinstance(item, str) else ksqldb_json_text(dump(item)) for item in _elements(array))


CUBE_MAX = 16  # elements; there are up to 2 ** 16 combinations


@udf("jsonb", to="jsonb")
def ksqldb_cube(array: str) -> str:
    """Returns all combinations of the elements and NULL in their places. Raises 54000."""
    elements = _elements(array)
    if len(elements) > CUBE_MAX:
        raise ProgramLimitExceeded(f"CUBE_EXPLODE takes at most {CUBE_MAX} elements")
    return dump(list(map(list, product(*([None] if e is None else [None, e] for e in elements)))))


# --- maps ----------------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="jsonb")
def ksqldb_as_map(keys: str, values: str) -> str:
    """Returns the map of two arrays. Keys without a value are NULL."""
    items = _elements(values)
    return dump({_text(key): items[n] if n < len(items) else None for n, key in enumerate(_elements(keys)) if key is not None})


def _hashed(map: str) -> dict[str, Json]:
    """Returns the entries of a map in the order that a map of ksqlDB has: that of Java's HashMap, created for this number of entries."""
    entries = _entries(map)
    capacity = 1 << (len(entries) - 1).bit_length()
    if len(entries) * 4 > capacity * 3:  # the load factor
        capacity *= 2
    return {key: entries[key] for key in sorted(entries, key=lambda key: _java_hash(key) & (capacity - 1))}


def _java_hash(text: str) -> int:
    """Returns the hash that HashMap has for a text."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFF_FFFF
    return code ^ (code >> 16)


@udf("jsonb", to="jsonb")
def ksqldb_map_keys(map: str) -> str:
    return dump(list(_hashed(map)))


@udf("jsonb", to="jsonb")
def ksqldb_map_values(map: str) -> str:
    return dump(list(_hashed(map).values()))


@udf("jsonb", "bool", to="jsonb")
def ksqldb_entries(map: str, by_key: bool) -> str:
    """Returns the entries of a map as structures with the fields K and V."""
    entries = _hashed(map)
    keys = sorted(entries, key=lambda key: key.encode("utf-16-be")) if by_key else list(entries)
    return dump([{"K": key, "V": entries[key]} for key in keys])


@udf("jsonb", to="jsonb")
def ksqldb_map_of(entries: str) -> str:
    """Returns the map of structures with the fields K and V. The last of equal keys counts. Raises 22004 for a key that is NULL."""
    map: dict[str, Json] = {}
    for entry in _elements(entries):
        if not isinstance(entry, dict):
            raise invalid()
        key = entry.get("K")
        if key is None:
            raise NullValueNotAllowed("a key of a map is NULL")
        map[_text(key)] = entry.get("V")
    return dump(map)


HISTOGRAM_MAX = 1000  # distinct values; others are ignored


@udf("jsonb", to="jsonb")
def ksqldb_histogram(array: str) -> str:
    """Returns how often each text of an array occurs."""
    counts = Counter(map(_text, _elements(array)))
    return dump({value: Decimal(counts[value]) for value in list(counts)[:HISTOGRAM_MAX]})
