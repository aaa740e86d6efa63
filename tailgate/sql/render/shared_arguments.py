"""Computes arguments once that a template uses several times.

exp(x) is written as CASE WHEN isinf(exp(x)) AND NOT isinf(x) … ELSE exp(x) END. If x itself comes
from such a template, copying it makes the SQL grow exponentially with the nesting depth. So a long
argument becomes a variable of a lambda:

    list_transform([x], lambda v: CASE WHEN isinf(exp(v)) AND NOT isinf(v) … ELSE exp(v) END)[1]

The lambda replaces the filled template, so the argument is evaluated for the same rows as before. A
macro of DuckDB counts with the size of its expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from tailgate.lake.errors import StatementTooComplex

# Characters that a template may copy. A lambda takes three times as long as an operator of DuckDB, so short arguments are copied.
COPIED_MAX = 200
# Characters of a statement's SQL. DuckDB parses it while it holds Python's global lock: 100 ms for 1 MB.
SQL_MAX = 512 * 1024

SUBQUERY = "(SELECT "
LAMBDA = "lambda "
HOLE = re.compile(r"\{(\d+|\*|\+|nulls|nonnulls|like\d+|fits\d+)\}")
FITS = 5  # how often at most a test with LIKE uses an argument (`tg_like_any`)
CALL = re.compile(r"\b(tg_\w+)\(")


class SqlText(NamedTuple):
    """The SQL of an expression. `size` is its approximate length in characters with macros expanded."""

    text: str
    size: int


def atom(text: str) -> SqlText:
    """Returns SQL without macros, whose size is its length."""
    return SqlText(text, len(text))


def checked_length(text: str) -> str:
    """Returns the SQL. Raises 54001 if it is too long."""
    if len(text) > SQL_MAX:
        raise StatementTooComplex(
            "statement is too complex",
            detail=f"The SQL that is generated for it may have at most {SQL_MAX} characters.",
            hint="Pass long lists as an array parameter: column = ANY ($1). Split deep expressions by subqueries or views.",
        )
    return text


class Macros:
    """DuckDB macros, from definitions `name(a, b) AS body`, with their sizes and uses of arguments."""

    def __init__(self, definitions: Iterable[str]) -> None:
        self._known: dict[str, tuple[tuple[str, ...], str]] = {}
        for definition in definitions:
            head, body = definition.split(" AS ", 1)
            name, _, parameters = head.partition("(")
            self._known[name.strip()] = tuple(p.strip() for p in parameters.rstrip(") ").split(",") if p.strip()), body

    def times(self, name: str) -> int:
        """Returns how often a macro evaluates its most used argument; 1 if the name is not a macro."""
        if name not in self._known:
            return 1
        parameters, body = self._known[name]
        most = max((len(re.findall(rf"\b{re.escape(p)}\b", body)) for p in parameters), default=1)
        return max(most, 1) * max((self.times(called) for called in CALL.findall(body)), default=1)

    def size(self, text: str) -> int:
        """Returns the length of a template in characters, without arguments, with macros expanded."""
        return len(text) + sum(self.size(self._known[called][1]) for called in CALL.findall(text) if called in self._known)


NO_MACROS = Macros(())


@cache
def uses(template: str, count: int, macros: Macros) -> tuple[int, ...]:
    """Returns, for each of `count` arguments, how often a template evaluates it at most.

    >>> uses("(CASE WHEN {0} = 0 THEN 0 ELSE {0} / {1} END)", 2, NO_MACROS)
    (2, 1)
    """
    counts = [0] * count
    for hole in HOLE.findall(template):
        if hole.isdigit():
            counts[int(hole)] += 1
        elif hole.startswith("like"):  # uses the text, the pattern and the flags
            for index in {0, int(hole[4:]), count - 1}:
                counts[index] += 1
        elif hole.startswith("fits"):
            for index in (0, int(hole[4:])):
                counts[index] += FITS
        else:
            for index in range(int(hole == "+"), count):
                counts[index] += 1
    factor = max((macros.times(called) for called in CALL.findall(template)), default=1)
    return tuple(n * factor for n in counts)


@cache
def own_size(template: str, macros: Macros) -> int:
    """Returns the size of a template without its arguments (cached)."""
    return macros.size(template)


def share_arguments(
    template: str, arguments: list[SqlText], times: tuple[int, ...], variables: Iterable[str]
) -> tuple[list[str], Mapping[str, str], int]:
    """Decides which arguments become variables.

    DuckDB refuses subqueries inside of lambdas. If one argument has a subquery, none becomes a variable, except that
    those with a subquery become the fields of one variable if the template is itself a lambda.

    Returns the texts that fill the template, the variables with their SQL, and the total size.
    """
    texts: list[str] = []
    lets: dict[str, str] = {}
    size = 0
    names = iter(variables)
    has_subquery = any(SUBQUERY in argument.text for argument in arguments)
    if has_subquery and LAMBDA in template:
        variable = next(names)
        fields = {i: argument.text for i, argument in enumerate(arguments) if SUBQUERY in argument.text}
        lets[variable] = "{" + ", ".join(f"'a{i}': {text}" for i, text in fields.items()) + "}"
        arguments = [SqlText(f"{variable}.a{i}", a.size) if i in fields else a for i, a in enumerate(arguments)]
    for argument, often in zip(arguments, times, strict=True):
        if often > 1 and argument.size > COPIED_MAX and not has_subquery:
            name = next(names)
            lets[name] = argument.text
            texts.append(name)
            size += argument.size + often * len(name)
        else:
            texts.append(argument.text)
            size += max(often, 1) * argument.size
    return texts, lets, size
