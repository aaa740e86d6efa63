"""Functions of arrays and maps.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Collections".
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import ARRAY, ELEMENT, MAP, TEXTS, Function


def _array(name: str, template: str, does: str) -> Function:
    """Returns a function of one array whose result has the same type."""
    return Function(name, (ARRAY,), "same", template, does)


def _of_two(name: str, template: str, does: str) -> Function:
    return Function(name, (ARRAY, "same"), "same", template, does)


def _keys(arguments: Sequence[TypeName]) -> TypeName:
    return TypeName("array", arguments=arguments[0].arguments[:1])


def _values(arguments: Sequence[TypeName]) -> TypeName:
    return TypeName("array", arguments=arguments[0].arguments[1:])


def _map(arguments: Sequence[TypeName]) -> TypeName:
    return TypeName("map", arguments=(t.VARCHAR, arguments[1].arguments[0]))


def _entries(arguments: Sequence[TypeName]) -> TypeName:
    return TypeName("array", arguments=(TypeName("struct", arguments=arguments[0].arguments, fields=("k", "v")),))


_SORT = "The elements in order, NULL last: ASC or DESC."
_JOIN = "The elements as one text, with a delimiter between them."
_TEXTS = """ksqldb_cast({0}, {type0}, '["array", "varchar"]')"""  # the elements as CAST writes them
_DESCENDING = "(CASE WHEN upper({1}) IN ('DESC', 'DESCENDING') THEN true WHEN upper({1}) IN ('ASC', 'ASCENDING') THEN false END)"
_LENGTH = "jsonb_array_length({0})"
_FIRST, _LAST = "coalesce({1}, 1)", f"coalesce({{2}}, {_LENGTH})"
_SLICE = f"CASE WHEN {_FIRST} >= 1 AND {_FIRST} <= {_LAST} + 1 AND {_LAST} <= {_LENGTH} THEN ksqldb_slice({{0}}, {_FIRST}, {_LAST}) END"

ROWS = (
    _of_two("array_concat", "coalesce({0} || {1}, {0}, {1})", "The elements of both arrays."),
    Function("array_contains", (ARRAY, ELEMENT), t.BOOLEAN, "coalesce(ksqldb_array_contains({0}, {j1}), false)",
             "Whether an array contains a value; false for NULL."),
    _array("array_distinct", "ksqldb_array_distinct({0})", "The distinct elements in the order of their first occurrence."),
    _of_two("array_except", "ksqldb_array_except({0}, {1})", "The distinct elements that the second array lacks."),
    _of_two("array_intersect", "ksqldb_array_intersect({0}, {1})", "The distinct elements of both arrays."),
    Function("array_join", (ARRAY,), t.VARCHAR, f"ksqldb_array_join({_TEXTS}, ',')", _JOIN, may_fail=True),
    Function("array_join", (ARRAY, t.VARCHAR), t.VARCHAR, f"ksqldb_array_join({_TEXTS}, {{1}})", _JOIN, may_fail=True),
    Function("array_length", (ARRAY,), t.INT, "jsonb_array_length({0})", "The number of elements.", may_fail=True),
    Function("array_max", (ARRAY,), ELEMENT, "ksqldb_array_max({0})", "The greatest element.", json=True, may_fail=True),
    Function("array_min", (ARRAY,), ELEMENT, "ksqldb_array_min({0})", "The smallest element.", json=True, may_fail=True),
    Function("array_remove", (ARRAY, ELEMENT), "same", "ksqldb_array_remove({0}, {j1})", "The elements that differ from a value."),
    Function("array_sort", (ARRAY,), "same", "ksqldb_array_sort({0}, false)", _SORT, may_fail=True),
    Function("array_sort", (ARRAY, t.VARCHAR), "same", f"ksqldb_array_sort({{0}}, {_DESCENDING})", _SORT, may_fail=True),
    _of_two("array_union", "ksqldb_array_union({0}, {1})", "The distinct elements of two arrays."),
    Function("as_map", (TEXTS, ARRAY), _map, "ksqldb_as_map({0}, {1})", "A map of an array of keys and one of values."),
    Function("entries", (MAP, t.BOOLEAN), _entries, "ksqldb_entries({0}, {1})",
             "The entries of a map as structures of K and V, optionally in the order of K."),
    Function("map_keys", (MAP,), _keys, "ksqldb_map_keys({0})", "The keys of a map."),
    Function("map_values", (MAP,), _values, "ksqldb_map_values({0})", "The values of a map."),
    Function("map_union", (MAP, "same"), "same", "coalesce({0} || {1}, {0}, {1})", "The entries of both maps; those of the second count."),
    Function("slice", (ARRAY, t.INT, t.INT), "same", _SLICE,
             "The elements between two positions, both included; NULL is the first or the last one.", may_fail=True),
    Function("elt", (t.INT, t.VARCHAR), t.VARCHAR, "(CASE WHEN {0} > 0 THEN (ARRAY[{+}])[{0}] END)",
             "The nth of the other arguments, or NULL.", variadic=True),
    Function("field", (t.VARCHAR, t.VARCHAR), t.INT, "CASE WHEN {0} IS NULL THEN 0 ELSE coalesce(array_position(ARRAY[{+}], {0}), 0) END",
             "The position of the first argument among the others, or 0.", variadic=True),
)  # fmt: skip
