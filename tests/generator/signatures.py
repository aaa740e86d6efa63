"""Expands the function catalog into signatures of concrete types, grouped by result type.

It has every function, operator and cast that both servers support. A polymorphic function has a
signature for each of a few element types. Functions that PostgreSQL lacks, that are not immutable,
or that depend on the order of rows are left out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from tailgate.lake.types import FACTS
from tailgate.sql.functions import ksqldb
from tailgate.sql.functions.aggregates import REGRESSIONS, VARIANCES
from tailgate.sql.functions.catalogue import ROWS
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.mathematics import LAST_DIGIT
from tests.sql.arguments import declared, restricted_values
from tests.sql.samples import ANY

ELEMENTS = ("int4", "text", "int8", "date", "numeric", "float8", "bool", "jsonb")
COMPATIBLE = ("int4", "text", "date", "float8")
ANYTHING = ("int4", "text", "bool", "date", "int8", "interval", "uuid", "jsonb", "timestamp", "int4[]", "text[]")

OURS = frozenset(
    "try pg_typeof any_value max_by min_by latest_by_offset earliest_by_offset mz_now mz_logical_timestamp digest hmac".split()
) | {row.name for row in ksqldb.ROWS}
# Functions of a numeric's scale, which may differ: see docs/sql/differences.md.
SCALES = frozenset("scale min_scale trim_scale".split())
# Rows with a syntax that is not a call: constructors, subscripts, slices.
SYNTAX = frozenset("ARRAY [] [:] like_escape similar_to_escape".split())
INEXACT = frozenset("avg sqrt exp ln log log10 power pow ^ |/ ||/ cbrt".split())


@dataclass(frozen=True, slots=True)
class Signature:
    """A function with types of arguments and result.

    `exact` means that all digits are reproducible.
    """

    function: Function
    arguments: tuple[str, ...]
    result: str
    exact: bool

    @property
    def name(self) -> str:
        return self.function.name.partition(":")[0]


def _concrete(function: Function) -> list[tuple[tuple[str, ...], str]]:
    """Returns the argument types and result type of each concrete form of a function."""
    names = function.arguments
    families = {"anyelement", "anyarray", "anycompatible", "anycompatiblearray", "any"} & set(names)
    if not families:
        result = function.result
        if callable(result):
            type = result(tuple(map(declared, names)))
            result = type.name + ("[]" if type.is_array else "")
        return [(names, result)]
    out = []
    elements = ANYTHING if families == {"any"} else COMPATIBLE if any(f.startswith("anycompatible") for f in families) else ELEMENTS
    for element in elements:
        if function.name == "array_agg" and element.endswith("[]"):
            continue
        concrete = {"anyelement": element, "anycompatible": element, "any": element, "anyarray": f"{element}[]",
            "anycompatiblearray": f"{element}[]"}  # fmt: skip
        arguments = tuple(concrete.get(n, n) for n in names)
        result = function.result
        if callable(result):
            type = result(tuple(map(declared, arguments)))
            result = type.name + ("[]" if type.is_array else "")
        out.append((arguments, concrete.get(result, result)))
    return out


def _left_out(function: Function) -> bool:
    name = function.name
    return (
        name in OURS
        or name in SCALES
        or name in SYNTAX
        or function.volatility != "immutable"
        or (function.kind != "window" and not function.duckdb)
    )


def _exact(function: Function, arguments: tuple[str, ...]) -> bool:
    if function.note == LAST_DIGIT or function.name in INEXACT or function.name in (*VARIANCES, *REGRESSIONS):
        return False
    if function.name == "percentile_cont" or (function.name == "sum" and arguments[0].startswith("float")):
        return False
    return not (function.name == "/" and "numeric" in arguments)


def _shows_scale(function: Function, arguments: tuple[str, ...], result: str) -> bool:
    """Returns whether a text or JSON result contains a numeric and so shows its scale."""
    types = {a.removesuffix("[]") for a in arguments}
    return "numeric" in types and result.removesuffix("[]") in ("text", "json", "jsonb", "varchar", "bpchar", "name")


def _unsorted(function: Function, arguments: tuple[str, ...]) -> bool:
    """Returns whether width_bucket would get thresholds that are not sorted, for which its result is not specified."""
    return function.name == "width_bucket" and arguments[-1].endswith("[]") and arguments[-1] != "int4[]"


# json has no comparison, which the shapes of the queries need, and ranges of numerics show the scales of their bounds, which may differ;
# tests/sql and tests/engine/plan compare their functions
KNOWN = frozenset(FACTS) - {"record", "unknown", "json", "numrange", "nummultirange", "enum", "regclass", "regtype"}
ALL: tuple[Signature, ...] = tuple(
    Signature(function, arguments, result, _exact(function, arguments))
    for function in ROWS
    if not _left_out(function)
    for arguments, result in _concrete(function)
    if all(t.removesuffix("[]") in KNOWN for t in (*arguments, result))
    and not _shows_scale(function, arguments, result)
    and not _unsorted(function, arguments)
)


def _by_result(*kinds: str) -> dict[str, dict[str, list[Signature]]]:
    by_result: dict[str, dict[str, list[Signature]]] = defaultdict(lambda: defaultdict(list))
    for signature in ALL:
        if signature.function.kind in kinds:
            by_result[signature.result][f"{signature.function.kind} {signature.name}"].append(signature)
    return {result: dict(names) for result, names in by_result.items()}


SCALARS = _by_result("function", "operator", "prefix", "cast")
AGGREGATES = _by_result("aggregate")
TYPES = tuple(sorted(SCALARS))


def pick(by_result: dict[str, dict[str, list[Signature]]], type: str, chance: random.Random, *, exact: bool) -> Signature | None:
    """Returns a random signature with this result type, or None. Each name is equally likely."""
    names = by_result.get(type)
    if not names:
        return None
    for _ in range(5):
        signature = chance.choice(names[chance.choice(list(names))])
        if signature.exact or not exact:
            return signature
    return None


def samples(signature: Signature, index: int) -> list[str | None]:
    """Returns the values that an argument must be taken from; empty if any value is useful."""
    return [v for v in restricted_values(signature.function, index, signature.arguments[index]) if v != ANY]
