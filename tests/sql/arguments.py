"""Lists of arguments for the rows of the function catalogue: NULLs and edges, then values at random."""

from __future__ import annotations

import itertools
import math
import random

from lake.errors import TailgateError
from lake.types import Type
from sql.binding.coercion import from_name
from sql.functions.entry import Function
from sql.input.literals import parse
from tests.sql.generated import SUMMED, generated
from tests.sql.samples import ANY, SAMPLES, SERIES, SMALL, WRITTEN_TIMES

LISTS = 60  # argument lists of each row
EDGES = 40  # of those, at most, NULLs and edges alone
TRIES = 4 * LISTS  # for others
EXTREME = ("NaN", "Infinity", "-Infinity", "1e308", "-1e308", "3.4e38")  # sums of these depend on the order of rows
FAMILIES = {"any": "int4", "anyelement": "int4", "anycompatible": "int4", "anyarray": "int4[]", "anycompatiblearray": "int4[]"}


def declared(name: str) -> Type:
    """A column's type for an argument type."""
    name = FAMILIES.get(name, name)
    if name.startswith("bpchar"):
        return Type("bpchar", (5,), is_array=name.endswith("[]"))
    return Type("numeric", (14, 2)) if name == "numeric" else from_name(name)


def lists(function: Function, chance: random.Random) -> list[tuple[str | None, ...]]:
    """Argument lists: NULLs and edges, then values at random where the function takes any."""
    given = [chosen(function, i, t) for i, t in enumerate(function.arguments)]
    names = [FAMILIES.get(t, t) for t in function.arguments]
    pools = [[v for v in values if v != ANY] or SAMPLES.get(n, [None]) for values, n in zip(given, names, strict=True)]
    if function.kind == "aggregate":
        pools = [[v for v in pool if v not in EXTREME] for pool in pools]
    if math.prod(map(len, pools)) <= LISTS * 50:
        edges = list(itertools.product(*pools))
        chance.shuffle(edges)
    else:
        edges = [tuple(chance.choice(pool) for pool in pools) for _ in range(LISTS)]
    any_of = [(not values or ANY in values) and n != "bool" for values, n in zip(given, names, strict=True)]
    if not any(any_of):
        return edges[:LISTS]
    makers = SUMMED if function.kind == "aggregate" else {}
    rows = edges[:EDGES]
    for _ in range(TRIES):
        row = [chance.choice(pool) for pool in pools]
        for i, (anything, n) in enumerate(zip(any_of, names, strict=True)):
            if anything:
                row[i] = makers[n](chance) if n in makers else generated(n, chance)
        if len(rows) < LISTS and tuple(row) not in rows:
            rows.append(tuple(row))
    return rows


def chosen(function: Function, index: int, name: str) -> list[str | None]:
    """What an argument is taken from, where not all of its type is of use."""
    if function.kind == "cast" and name in ("text", "varchar", "bpchar") and function.result in WRITTEN_TIMES:
        return [v for v in WRITTEN_TIMES[function.result] if reads(v, declared(name))]
    if function.name == "generate_series" and name not in ("int4", "int8"):
        return SERIES[name]
    small = SMALL.get(f"{function.name}/{len(function.arguments)}", SMALL.get(function.name, {}))
    return [v for v in small.get(index, []) if v == ANY or reads(v, declared(name))]


def reads(text: str | None, type: Type) -> bool:
    try:
        return text is None or parse(text, type) is not None
    except TailgateError:
        return False
