"""Operators and functions of ranges and multiranges. User-defined functions take bounds as texts, so that one serves all types."""

from __future__ import annotations

from tailgate.lake.ranges import MULTIRANGE_OF
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
COMPARISONS = {"<<": "range_before", "&<": "range_overleft", "&>": "range_overright", "-|-": "range_adjacent"}  # of outer bounds
ARITHMETIC = {"+": "union", "*": "intersect", "-": "minus"}
NO_RANGES = ("CAST(array() AS ARRAY<BINARY>)", "CAST([] AS BLOB[])")


def constructor(name: str, count: int, to_text: tuple[str, str]) -> tuple[str, str]:
    """Returns the templates of a range type's constructor with 2 or 3 arguments. `to_text`: those of a bound's text."""
    templates = []
    for text, items in zip(to_text, LISTS, strict=True):
        bounds = items.format(", ".join(text.replace("{0}", f"{{{n}}}") for n in (0, 1)))
        templates.append(f"tg_range('{name}', {bounds}, {items.format('{2}' if count == 3 else chr(39) + '[)' + chr(39))})")
    return templates[0], templates[1]


def multirange(name: str, ranges: tuple[str, str]) -> tuple[str, str]:
    """Returns the templates of a multirange. `name`: of the range type. `ranges`: the templates of a list of ranges."""
    spark, duckdb = (f"tg_multirange('{name}', {list})" for list in ranges)
    return spark, duckdb


def contains(kind: str, range: int, element: int, to_text: tuple[str, str]) -> tuple[str, str]:
    """Returns the templates of `@>` with an element.

    `kind`: range or multirange. `range`, `element`: the numbers of the arguments. `to_text`: the templates of the element's text.
    """
    spark, duckdb = (f"tg_{kind}_contains_element({{{range}}}, {text.replace('{0}', f'{{{element}}}')})" for text in to_text)
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


def _operators(kind: str, pair: tuple[str, str]) -> list[Function]:
    """Returns the comparisons of two ranges, or of two multiranges or one and a range. `kind`: range or multirange."""
    return [
        udf("@>", pair, B, f"{kind}_contains", "operator"),
        udf("<@", pair, B, f"{kind}_contains", "operator", order=(1, 0)),
        udf(">>", pair, B, "range_before", "operator", order=(1, 0)),
        udf("&&", pair, B, f"{kind}_overlaps", "operator"),
        *(udf(sign, pair, B, call, "operator") for sign, call in COMPARISONS.items()),
    ]


def _of_type(kind: str, name: str, subtype: str) -> list[Function]:
    """Returns the functions that range and multirange types have in common."""
    to_text = TO_TEXT[subtype]
    return [
        *_operators(kind, (name, name)),
        Function("@>", (name, subtype), B, *contains(kind, 0, 1, to_text), "operator"),
        Function("<@", (subtype, name), B, *contains(kind, 1, 0, to_text), "operator"),
        *(udf(sign, (name, name), name, f"{kind}_{call}", "operator") for sign, call in ARITHMETIC.items()),
        *(udf(function, (name,), B, call) for function, call in TESTS.items()),
        *(_bound(side, name, subtype) for side in ("lower", "upper")),
    ]


def _rows(name: str, subtype: str) -> list[Function]:
    to_text, multi = TO_TEXT[subtype], MULTIRANGE_OF[name]
    return [
        Function(name, (subtype, subtype), name, *constructor(name, 2, to_text), strict=False),
        Function(name, (subtype, subtype, T), name, *constructor(name, 3, to_text), strict=False),
        *_of_type("range", name, subtype),
        udf("range_merge", (name, name), name),
        Function(multi, (), multi, *multirange(name, NO_RANGES)),
        udf(multi, (name,), multi, "range_to_multirange"),
        Function(
            multi, (name, name), multi, *multirange(name, (LISTS[0].format("{*}"), LISTS[1].format("{*}"))), strict=False, variadic=True
        ),
        udf("multirange", (name,), multi, "range_to_multirange"),
        *_of_type("multirange", multi, subtype),
        *(row for pair in ((multi, name), (name, multi)) for row in _operators("multirange", pair)),
        udf("range_merge", (multi,), name, "range_of_multirange"),
    ]


# VARIADIC array of ranges, by multirange type
OF_ARRAY = {multi: Function(multi, (f"{name}[]",), multi, *multirange(name, ("{0}", "{0}"))) for name, multi in MULTIRANGE_OF.items()}
ROWS = tuple(row for type in RANGE_TYPES.values() for row in _rows(type.name, type.subtype.name))
