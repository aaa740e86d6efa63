"""Operators and functions of ranges. User-defined functions take bounds as texts, so that one serves all range types."""

from __future__ import annotations

from tailgate.lake.types import GENERAL, NUMERIC, Type
from tailgate.sql.functions.casts import TO_TEXT
from tailgate.sql.functions.entry import Function, udf
from tailgate.sql.numeric_types import keeps_general
from tailgate.values.ranges.forms import RANGE_TYPES

B, T = "bool", "text"
LISTS = ("array({})", "[{}]")  # in Spark and DuckDB
TESTS = {
    "isempty": "range_is_empty",
    **{f"{side}_{word}": f"range_{side}_{word}" for side in ("lower", "upper") for word in ("inc", "inf")},
}
COMPARISONS = {"&&": "range_overlaps", "<<": "range_before", "&<": "range_overleft", "&>": "range_overright", "-|-": "range_adjacent"}
ARITHMETIC = {"+": "range_union", "*": "range_intersect", "-": "range_minus"}


def constructor(name: str, count: int, to_text: tuple[str, str]) -> tuple[str, str]:
    """Returns the templates of a range type's constructor with 2 or 3 arguments. `to_text`: those of a bound's text."""
    templates = []
    for text, items in zip(to_text, LISTS, strict=True):
        bounds = items.format(", ".join(text.replace("{0}", f"{{{n}}}") for n in (0, 1)))
        templates.append(f"tg_range('{name}', {bounds}, {items.format('{2}' if count == 3 else chr(39) + '[)' + chr(39))})")
    return templates[0], templates[1]


def contains(range: int, element: int, to_text: tuple[str, str]) -> tuple[str, str]:
    """Returns the templates of `@>` with an element: the numbers of the arguments, and the templates of the element's text."""
    spark, duckdb = (f"tg_range_contains_element({{{range}}}, {text.replace('{0}', f'{{{element}}}')})" for text in to_text)
    return spark, duckdb


def _bound(side: str, name: str, subtype: str) -> Function:
    template = f"tg_text_to_{subtype}(tg_range_{side}({{0}}))"
    if subtype != "numeric":
        return Function(side, (name,), subtype, template, template)
    template = f"tg_text_to_numeric(tg_range_{side}({{0}}), {{precision}}, {{scale}})"
    return Function(side, (name,), _of_numrange, template, f"CAST({template} AS {{type}})")


def _of_numrange(types: tuple[Type, ...]) -> Type:
    """Returns the type of a bound of a numrange, whose display scale each value has."""
    return GENERAL if keeps_general() else NUMERIC


def _rows(name: str, subtype: str) -> list[Function]:
    pair, to_text = (name, name), TO_TEXT[subtype]
    return [
        Function(name, (subtype, subtype), name, *constructor(name, 2, to_text), strict=False),
        Function(name, (subtype, subtype, T), name, *constructor(name, 3, to_text), strict=False),
        udf("@>", pair, B, "range_contains", "operator"),
        udf("<@", pair, B, "range_contains", "operator", order=(1, 0)),
        Function("@>", (name, subtype), B, *contains(0, 1, to_text), "operator"),
        Function("<@", (subtype, name), B, *contains(1, 0, to_text), "operator"),
        udf(">>", pair, B, "range_before", "operator", order=(1, 0)),
        *(udf(sign, pair, B, call, "operator") for sign, call in COMPARISONS.items()),
        *(udf(sign, pair, name, call, "operator") for sign, call in ARITHMETIC.items()),
        *(udf(function, (name,), B, call) for function, call in TESTS.items()),
        *(_bound(side, name, subtype) for side in ("lower", "upper")),
        udf("range_merge", pair, name),
    ]


ROWS = tuple(row for type in RANGE_TYPES.values() for row in _rows(type.name, type.subtype.name))
