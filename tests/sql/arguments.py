"""Lists of arguments for the function catalogue: NULLs, edge cases and random values."""

from __future__ import annotations

import itertools
import math
import random

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.sql.binder.types.coercion import from_name
from tailgate.sql.functions.entry import Function
from tailgate.values.registry import read_text as parse
from tests.sql.generated import EXACT_SUMS, random_value
from tests.sql.samples import ANY, SAMPLES, SERIES, SMALL, TIME_TEXTS

LISTS = 60  # argument lists of each entry
EDGE_LISTS_MAX = 40  # of NULLs and edge cases only
ATTEMPTS = 4 * LISTS  # to find other lists
# their sum depends on the order of rows; of money, PostgreSQL does not check it
EXTREME = ("NaN", "Infinity", "-Infinity", "1e308", "-1e308", "3.4e38", "92233720368547758.07", "-92233720368547758.08")
FAMILIES = {"any": "int4", "anyelement": "int4", "anycompatible": "int4", "anyarray": "int4[]", "anycompatiblearray": "int4[]"}


def of_enum(function: Function) -> bool:
    """Returns whether a function takes enums, which have no type before CREATE TYPE (`tests/tables/enums.sql`)."""
    return any(name.removesuffix("[]") in ("enum", "anyenum") for name in function.arguments)


def declared(name: str) -> Type:
    """Returns the type of a column for arguments of a type."""
    name = FAMILIES.get(name, name)
    if name.startswith("bpchar"):
        return Type("bpchar", (5,), is_array=name.endswith("[]"))
    return Type("numeric", (14, 2)) if name == "numeric" else from_name(name)


def lists(function: Function, rng: random.Random) -> list[tuple[str | None, ...]]:
    """Returns argument lists: NULLs, edge cases, and random values where any value will do."""
    restrictions = [restricted_values(function, i, t) for i, t in enumerate(function.arguments)]
    names = [FAMILIES.get(t, t) for t in function.arguments]
    pools = [[v for v in values if v != ANY] or SAMPLES.get(n, [None]) for values, n in zip(restrictions, names, strict=True)]
    if function.kind == "aggregate":
        pools = [[v for v in pool if v not in EXTREME] for pool in pools]
    if function.name == "/" and names[0] == "money":  # what PostgreSQL raises for the smallest amount by -1 depends on the processor
        pools[0] = [v for v in pools[0] if v not in EXTREME]
    if math.prod(map(len, pools)) <= LISTS * 50:
        edges = list(itertools.product(*pools))
        rng.shuffle(edges)
    else:
        edges = [tuple(rng.choice(pool) for pool in pools) for _ in range(LISTS)]
    takes_any = [(not values or ANY in values) and n != "bool" for values, n in zip(restrictions, names, strict=True)]
    if not any(takes_any):
        return edges[:LISTS]
    generators = EXACT_SUMS if function.kind == "aggregate" else {}
    rows = edges[:EDGE_LISTS_MAX]
    for _ in range(ATTEMPTS):
        row = [rng.choice(pool) for pool in pools]
        for i, (any_value, n) in enumerate(zip(takes_any, names, strict=True)):
            if any_value:
                row[i] = generators[n](rng) if n in generators else random_value(n, rng)
        if len(rows) < LISTS and tuple(row) not in rows:
            rows.append(tuple(row))
    return rows


def restricted_values(function: Function, index: int, name: str) -> list[str | None]:
    """Returns the useful values of an argument, or an empty list if any value is useful."""
    if function.kind == "cast" and name in ("text", "varchar", "bpchar") and function.result in TIME_TEXTS:
        return [v for v in TIME_TEXTS[function.result] if is_valid(v, declared(name))]
    if function.name == "generate_series" and name not in ("int4", "int8"):
        return SERIES[name]
    small = SMALL.get(f"{function.name}/{len(function.arguments)}", SMALL.get(function.name, {}))
    values = [v for v in small.get(index, []) if v == ANY or is_valid(v, declared(name))]
    return values if values != [None] else []  # those of another type, such as texts for `lower` of a range


def is_valid(text: str | None, type: Type) -> bool:
    try:
        return text is None or parse(text, type) is not None
    except TailgateError:
        return False
