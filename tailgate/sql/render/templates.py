"""Fills the SQL templates of the function catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tailgate.lake.types import DIMENSIONS_DUCKDB, DIMENSIONS_SPARK, Type
from tailgate.sql.numeric_types import divisor
from tailgate.values.strings import registered

HOLE = re.compile(
    r"\{(\d+|\*|\+|nulls|nonnulls|type|element|divisor|long0|precision\d*|scale\d*|name\d+|registered\d+|length|now|distinct|order|filter|present|others|values|(?:test|search|global|like|fits|path)\d+)\}"
)


DIGITS_64 = 18  # of decimals that DuckDB computes as 64-bit integers
NONE: Mapping[str, str] = {"now": "", "distinct": "", "order": "", "filter": "", "present": "", "others": "", "values": ""}


def fill_template(
    template: str,
    arguments: Sequence[str],
    types: Sequence[Type],
    result: Type,
    spelling: str,
    marks: Mapping[str, str] = NONE,
    pattern: Callable[[str, int], str] | None = None,
) -> str:
    """Returns the template filled with SQL of the arguments and properties of the types.

    `spelling`: the engine's name of the result type. `pattern`: returns the SQL of a regular expression,
    by kind and index of the argument. `marks`: the time of the
    statement (now) and the clauses of an aggregate (DISTINCT, ORDER BY, FILTER).

    >>> from tailgate.lake.types import INT4
    >>> fill_template("CAST({0} div {1} AS {type})", ["a", "b"], [INT4, INT4], INT4, "INT")
    'CAST(a div b AS INT)'
    """

    def hole(match: re.Match[str]) -> str:
        name = match[1]
        if name.isdigit():
            return arguments[int(name)]
        if name == "*":
            return ", ".join(arguments)
        if name == "+":
            return ", ".join(arguments[1:])
        if name in ("nulls", "nonnulls"):
            test = "IS NULL" if name == "nulls" else "IS NOT NULL"
            return " + ".join(f"CAST(({a} {test}) AS INT)" for a in arguments)
        if name == "type":
            return spelling
        if name == "element":
            return _element(spelling)
        if name == "divisor":
            return divisor(tuple(types))
        if name == "long0":
            return _long(arguments[0], types, result)
        if name in NONE:
            return marks.get(name, "")
        if name == "length":
            return str(result.modifiers[0] if result.modifiers else 1)
        fact_and_index = re.fullmatch(r"([a-z]+)(\d*)", name)
        assert fact_and_index is not None, name
        fact, index = fact_and_index.groups()
        if fact in ("test", "search", "global", "like", "fits", "path"):
            assert pattern is not None
            return pattern(fact, int(index))
        if fact in ("name", "registered"):
            type = replace(types[int(index)], modifiers=())
            return (str(type) if fact == "name" else registered.stored(type.oid, str(type))).replace("'", "''")
        decimal = (types[int(index)] if index else result).decimal
        return str(decimal[0 if fact == "precision" else 1])

    return HOLE.sub(hole, template)


def _element(spelling: str) -> str:
    """Returns the type of the elements of an array."""
    for form in (DIMENSIONS_SPARK, DIMENSIONS_DUCKDB):
        head, _, tail = form.partition("{}")
        if spelling.startswith(head) and spelling.endswith(tail):
            spelling = spelling[len(head) : -len(tail)]
    return spelling[len("array<") : -1] if spelling.startswith("array<") else spelling.removesuffix("[]")


def _long(argument: str, types: Sequence[Type], result: Type) -> str:
    """Returns argument 0 for DuckDB's operators, which compute in 128 bits only if an operand has more than 18 digits."""
    if result.decimal[0] <= DIGITS_64 or any(t.decimal[0] > DIGITS_64 for t in types):
        return argument
    return f"CAST({argument} AS DECIMAL({DIGITS_64 + 1},{types[0].decimal[1]}))"
