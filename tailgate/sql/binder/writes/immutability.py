"""The functions that are immutable in PostgreSQL. Only these may compute a generated column.

Others depend on settings of the session in PostgreSQL, such as TimeZone and DateStyle, or on the catalog.

Source: PostgreSQL 15, pg_proc.provolatile; tests compare every row of the catalogue.
"""

from __future__ import annotations

from tailgate.lake.ranges import ALL_RANGES
from tailgate.sql.functions.entry import Function

# functions that are stable for all arguments
STABLE = frozenset(
    """
    pg_typeof format concat concat_ws convert convert_from convert_to make_timestamptz to_char to_number to_date to_jsonb to_json
    array_to_json array_to_string json_build_object json_build_array jsonb_build_object jsonb_build_array row_to_json
    """.split()
)
STABLE_SIGNATURES = frozenset((("length", ("bytea", "text")), ("to_timestamp", ("text", "text"))))
TEXTS = frozenset(("text", "varchar", "bpchar", "name"))
READ_BY_CONTEXT = frozenset(
    ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "enum", "money", *ALL_RANGES)
)  # input depends on settings or labels; that of ranges is declared so for all subtypes
SHOWN_BY_CONTEXT = READ_BY_CONTEXT - {"time", "timetz"} | {"regclass", "regtype"}  # types whose output depends on them or on names
LOCAL = frozenset(("date", "time", "timestamp"))  # types of local time, between which and timestamptz a cast depends on the time zone


def is_immutable(function: Function) -> bool:
    """Returns whether the value depends on the arguments alone."""
    name, arguments = function.name.partition(":")[0], frozenset(function.arguments)
    if function.volatility != "immutable" or name in STABLE or (name, function.arguments) in STABLE_SIGNATURES:
        return False
    if function.kind == "cast":
        result = function.result if isinstance(function.result, str) else ""
        return not any(_depends_on_context(argument, result) for argument in arguments)
    if function.kind == "operator" and name == "||":
        return not (arguments & TEXTS and arguments & SHOWN_BY_CONTEXT)
    if "timestamptz" in arguments:
        is_local = function.kind == "operator" and arguments & (LOCAL | {"interval"})
        return not is_local and name not in ("date_trunc", "extract", "date_part")
    return True


def _depends_on_context(source: str, target: str) -> bool:
    """Returns whether a cast depends on settings of the session, or on the labels of an enum type."""
    if source.endswith("[]") and target.endswith("[]"):
        source, target = source[:-2], target[:-2]
    if source in TEXTS:
        return target in READ_BY_CONTEXT or target.endswith("[]")
    if target in TEXTS:
        return source in SHOWN_BY_CONTEXT or source.endswith("[]")
    if "money" in (source, target):  # lc_monetary
        return source != target
    return (target == "timetz" and source != "timetz") or ("timestamptz" in (source, target) and bool({source, target} & LOCAL))
