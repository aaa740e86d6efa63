"""Renders aggregates as DuckDB SQL: fills the catalogue's template, with DISTINCT, ORDER BY and FILTER."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tailgate.sql.functions.aggregates import JOINED, STRICT, WITHIN_GROUP
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import AggregateCall, Scalar, SortKey
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
from tailgate.sql.render.templates import fill_template

Spell = Callable[[Scalar], str]
# of arrays whose equal elements have several stored forms, as intervals and general numerics have
EXTREME = "(list({0}{order}){present})[1]"
DIRECTIONS = {"min": "ASC", "max": "DESC"}


def aggregate(call: AggregateCall, spell: Spell) -> str:
    """Returns the SQL of an aggregate."""
    function, operands = call.function, arguments(call)
    template = JOINED[function.arguments[0]] if function.name == "string_agg" and columns_of(operands[1]) else function.duckdb
    texts = [spell(a) for a in operands]
    conditions = [] if call.filter is None else [spell(call.filter)]
    present = [f"{texts[i]} IS NOT NULL" for i in STRICT.get(function.name, (0,)) if i < len(texts)]
    marks = {
        "distinct": "DISTINCT " if call.distinct else "",
        "order": _order(call, texts, spell),
        "filter": filter_clause(conditions),
        "present": filter_clause([*conditions, *present]),
        **(general_values(texts[0], conditions, present, distinct=call.distinct) if function.takes_general else {}),
    }
    if is_extreme_of_arrays(function, operands):
        template, marks["order"] = EXTREME, extreme_order(function, operands[0], spell)
    return fill_template(template, texts, [a.type for a in operands], call.type, call.type.duckdb, marks=marks)


def is_extreme_of_arrays(function: Function, operands: Sequence[Scalar]) -> bool:
    """Returns whether a function is the minimum or the maximum of arrays whose stored forms do not compare like the values."""
    return function.name in DIRECTIONS and operands[0].type.is_array and has_equal_forms(operands[0].type)


def extreme_order(function: Function, operand: Scalar, spell: Spell) -> str:
    """Returns the ORDER BY that has the minimum or the maximum first."""
    return order_by([f"{spell(sort_key(operand))} {DIRECTIONS[function.name]}", spell(operand)])


def general_values(text: str, conditions: list[str], present: list[str], *, distinct: bool = False, over: str = "") -> dict[str, str]:
    """Returns the marks `others` and `values`: lists of general numerics that DuckDB does not sum, and of all.

    With DISTINCT they have one of the values that are equal. `over`: the OVER clause of a window function.
    """
    tests_of = {"others": [*conditions, f"tg_general_is_other({text})"], "values": [*conditions, *present]}
    lists = {mark: f"list({text}){filter_clause(tests)}{over}" for mark, tests in tests_of.items()}
    return {mark: f"tg_general_unique({values})" if distinct else values for mark, values in lists.items()}


def arguments(call: AggregateCall) -> tuple[Scalar, ...]:
    """Returns the arguments for the template.

    Those of an ordered-set aggregate include its sort keys.
    """
    return (*call.arguments, *(k.expression for k in call.order)) if call.function.name in WITHIN_GROUP else call.arguments


def sort_terms(keys: Iterable[SortKey], spell: Spell) -> list[str]:
    """Returns the terms of ORDER BY, without constants, which DuckDB would read as column numbers."""
    return [
        f"{spell(sort_key(k.expression))} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in keys
        if columns_of(k.expression)
    ]


def order_by(terms: list[str]) -> str:
    """Returns the ORDER BY clause for some terms, or '' without terms."""
    return f" ORDER BY {', '.join(terms)}" if terms else ""


def _order(call: AggregateCall, texts: list[str], spell: Spell) -> str:
    """Returns the ORDER BY of an aggregate.

    Ties are broken by its arguments, so the result is deterministic.
    """
    terms = sort_terms(call.order, spell)
    if call.function.name not in WITHIN_GROUP:
        keys = [k.expression for k in call.order]
        rest = [f"{t} ASC NULLS LAST" for t, a in zip(texts, call.arguments, strict=True) if a not in keys and columns_of(a)]
        if call.distinct and len(rest) > 1:  # the template lists the arguments; DISTINCT can only sort by this list
            rest = [f"[{', '.join(texts)}]"]
        terms += rest
    return order_by(terms)


def filter_clause(conditions: list[str]) -> str:
    """Returns the FILTER clause for the conjunction of conditions, or '' without conditions."""
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
