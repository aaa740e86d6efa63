"""Storage parameters of tables, indexes and columns: their names and values.

Source: PostgreSQL 15, src/backend/access/common/reloptions.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.statements.definitions import IndexMethod
from tailgate.sql.statements.values import Options
from tailgate.values.booleans import WORDS as BOOLEAN_WORDS

Kind: TypeAlias = Literal["table", "column"] | IndexMethod
INT_MAX = 2**31 - 1
AGE_MAX = 2_000_000_000  # of transactions
# of integers: the least and the greatest value
INTEGERS: Mapping[str, tuple[int, int]] = {
    "toast_tuple_target": (128, 8160),
    "parallel_workers": (0, 1024),
    "autovacuum_vacuum_threshold": (0, INT_MAX),
    "autovacuum_vacuum_insert_threshold": (-1, INT_MAX),
    "autovacuum_analyze_threshold": (0, INT_MAX),
    "autovacuum_vacuum_cost_limit": (1, 10_000),
    "autovacuum_freeze_min_age": (0, 1_000_000_000),
    "autovacuum_multixact_freeze_min_age": (0, 1_000_000_000),
    "autovacuum_freeze_max_age": (100_000, AGE_MAX),
    "autovacuum_multixact_freeze_max_age": (10_000, AGE_MAX),
    "autovacuum_freeze_table_age": (0, AGE_MAX),
    "autovacuum_multixact_freeze_table_age": (0, AGE_MAX),
    "log_autovacuum_min_duration": (-1, INT_MAX),
}
FILLFACTOR: Mapping[str, tuple[int, int]] = {"fillfactor": (10, 100)}
NUMBERS: Mapping[str, tuple[float, float]] = dict.fromkeys(
    (
        "autovacuum_vacuum_cost_delay",
        "autovacuum_vacuum_scale_factor",
        "autovacuum_vacuum_insert_scale_factor",
        "autovacuum_analyze_scale_factor",
    ),
    (0.0, 100.0),
)
DISTINCT: Mapping[str, tuple[float, float]] = dict.fromkeys(("n_distinct", "n_distinct_inherited"), (-1.0, 1.7976931348623157e308))
BOOLEANS = ("autovacuum_enabled", "user_catalog_table", "vacuum_truncate")
CLEANUP = "vacuum_index_cleanup"
INTEGERS_OF: Mapping[Kind, Mapping[str, tuple[int, int]]] = {
    "table": {**INTEGERS, **FILLFACTOR}, **dict.fromkeys(("btree", "hash", "gist", "spgist"), FILLFACTOR),
    "gin": {"gin_pending_list_limit": (64, INT_MAX)}, "brin": {"pages_per_range": (1, 131_072)},
}  # fmt: skip
NUMBERS_OF: Mapping[Kind, Mapping[str, tuple[float, float]]] = {"table": NUMBERS, "column": DISTINCT}
BOOLEANS_OF: Mapping[Kind, tuple[str, ...]] = {
    "table": BOOLEANS, "btree": ("deduplicate_items",), "gin": ("fastupdate",), "brin": ("autosummarize",)
}  # fmt: skip


def changed(before: Mapping[str, str], changes: Iterable[tuple[str, str | None]], kind: Kind) -> Mapping[str, str]:
    """Returns the parameters after SET and RESET, in PostgreSQL's order. None resets a parameter. Raises 22023 and 0A000."""
    new: dict[str, str | None] = {}
    for name, value in changes:
        if name in new:
            raise InvalidParameterValue(f'parameter "{name}" specified more than once')
        new[name] = value
    others = {name: value for name, value in before.items() if name not in new}
    after = others | {name: value for name, value in new.items() if value is not None}
    for name, value in after.items():
        _check(name, value, kind)
    return after


def created(options: Options) -> Mapping[str, str]:
    """Returns the parameters of CREATE TABLE, among other options. `oids = false` has no effect. Raises 22023 and 0A000."""
    parameters = [(name, value) for name, value in options if isinstance(value, str) and " " not in name]
    if any(name == "oids" and BOOLEAN_WORDS.get(value.lower()) is not False for name, value in parameters):
        raise FeatureNotSupported("tables declared WITH OIDS are not supported")
    return changed({}, [pair for pair in parameters if pair[0] != "oids"], "table")


def _check(name: str, value: str, kind: Kind) -> None:
    """Raises 22023 for an unknown parameter or an invalid value, and 0A000 for those of TOAST tables."""
    namespace, dot, _ = name.rpartition(".")
    if dot and namespace == "toast" and kind == "table":
        raise FeatureNotSupported(f'storage parameter "{name}" is not supported', hint="There are no TOAST tables.")
    if dot:
        raise InvalidParameterValue(f'unrecognized parameter namespace "{namespace}"')
    if name in INTEGERS_OF.get(kind, {}):
        integer = _number(value, r"[-+]?(\d+(\.\d*)?|0x[0-9a-f]{1,16})")
        if integer is None or abs(integer) > INT_MAX:
            raise InvalidParameterValue(f'invalid value for integer option "{name}": {value}')
        least, greatest = INTEGERS_OF[kind][name]
        if not least <= round(integer) <= greatest:
            raise _out_of_bounds(name, value, str(least), str(greatest))
    elif name in NUMBERS_OF.get(kind, {}):
        number = _number(value, r"[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?")
        if number is None:
            raise InvalidParameterValue(f'invalid value for floating point option "{name}": {value}')
        low, high = NUMBERS_OF[kind][name]
        if not low <= number <= high:
            raise _out_of_bounds(name, value, f"{low:.6f}", f"{high:.6f}")
    elif name in BOOLEANS_OF.get(kind, ()):
        if value.lower() not in BOOLEAN_WORDS:
            raise InvalidParameterValue(f'invalid value for boolean option "{name}": {value}')
    elif name == CLEANUP and kind == "table":
        if value.lower() not in ("auto", "on", "off", "true", "false", "yes", "no", "1", "0"):
            detail = 'Valid values are "on", "off", and "auto".'
            raise InvalidParameterValue(f'invalid value for enum option "{name}": {value}', detail=detail)
    else:
        raise InvalidParameterValue(f'unrecognized parameter "{name}"')


def _number(value: str, pattern: str) -> float | None:
    """Returns the number that a text has, or None if it has not this form."""
    text = value.strip().lower()
    if re.fullmatch(pattern, text) is None:
        return None
    return float(int(text, 16)) if "0x" in text else float(text)


def _out_of_bounds(name: str, value: str, least: str, greatest: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f'value {value} out of bounds for option "{name}"', detail=f'Valid values are between "{least}" and "{greatest}".'
    )
