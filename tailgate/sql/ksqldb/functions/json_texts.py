"""Functions of texts that contain JSON.

Source: ksqlDB 0.29, documentation, "Scalar functions", sections "Strings" and "Collections".
"""

from __future__ import annotations

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import TEXTS, Function, Kind
from tailgate.sql.ksqldb.typed import casts

RECORDS = TypeName("map", arguments=(t.VARCHAR, t.VARCHAR))


def _row(name: str, result: TypeName, template: str, does: str) -> Function:
    return Function(name, (t.VARCHAR,), result, template, does, may_fail=True)


def _contains(kind: Kind) -> Function:
    json = "CAST(CAST({0} AS text) AS jsonb)"  # a literal is not a jsonb yet, which might fail
    template = f"CASE WHEN ksqldb_is_json({{0}}) THEN jsonb_typeof({json}) = 'array' AND {json} @> {{j1}} ELSE false END"
    return Function("json_array_contains", (t.VARCHAR, kind), t.BOOLEAN, template, "Whether a JSON array contains a value.", may_fail=True)


def _concat(count: int) -> Function:
    """Returns JSON_CONCAT of a number of arguments."""
    template = "{0}"
    for n in range(1, count):
        template = f"ksqldb_json_concat({template}, {{{n}}})"
    return Function(
        "json_concat", (t.VARCHAR,) * count, t.VARCHAR, template, "The union of objects, or the elements of values.", may_fail=True
    )


def _of_moment(kind: TypeName) -> Function:
    """Returns TO_JSON_STRING of a DATE, TIME or TIMESTAMP: a string with the text that CAST gives."""
    template = f"coalesce('\"' || {casts.TEXTS[kind.name]} || '\"', 'null')"
    return Function("to_json_string", (kind,), t.VARCHAR, template, _JSON)


_JSON = "The JSON of a value."
CONCAT_MAX = 8  # arguments of JSON_CONCAT

ROWS = (
    Function("extractjsonfield", (t.VARCHAR, t.VARCHAR), t.VARCHAR, "ksqldb_json_field({0}, {1})",
             "The value at a path such as $.a[0].b, as text.", may_fail=True),
    Function("is_json_string", (t.VARCHAR,), t.BOOLEAN, "coalesce(ksqldb_is_json({0}), false)", "Whether a text is JSON."),
    _row("json_array_length", t.INT, "ksqldb_json_array_length({0})", "The number of elements of a JSON array; NULL for other values."),
    _row("json_keys", TEXTS, "ksqldb_json_keys({0})", "The keys of a JSON object."),
    _row("json_items", TEXTS, "ksqldb_json_items({0})", "The elements of a JSON array, as texts of JSON."),
    _row("json_records", RECORDS, "ksqldb_json_records({0})", "The members of a JSON object, as texts of JSON."),
    *map(_concat, range(2, CONCAT_MAX + 1)),
    *map(_contains, (t.BOOLEAN, t.INT, t.BIGINT, t.DECIMAL, t.DOUBLE, t.VARCHAR)),
    *map(_of_moment, (t.DATE, t.TIME, t.TIMESTAMP)),
    Function("to_json_string", ("any",), t.VARCHAR, "ksqldb_typed_json({j0}, {type0})", _JSON),
)  # fmt: skip
