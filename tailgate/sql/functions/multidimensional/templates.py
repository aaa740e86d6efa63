"""Templates for multidimensional arrays, in place of those of the catalogue's rows for arrays of one dimension from 1.

An array is a struct of its elements and its dimensions (`values.composites.dimensions`). The template of the row is applied to the
elements, and user-defined functions compute the dimensions. A function without a template here takes arrays of one dimension from 1
only, and raises 0A000 for others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tailgate.lake.types import Type
from tailgate.sql.functions import arrays
from tailgate.sql.functions.arrays import INVALID_TRIM, MULTIDIMENSIONAL
from tailgate.sql.functions.comparison import SIGNS, nested_duckdb
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error, strict

ARRAY = "anyarray"
NULLS_LAST = "transform({%d}.elements, tg_x -> named_struct('n', tg_x IS NULL, 'x', tg_x))"
NO_SEARCH = "searching for elements in multidimensional arrays is not supported"
NO_REMOVAL = "removing elements from multidimensional arrays is not supported"
NOT_A_LIST = "argument must be empty or one-dimensional array"


@dataclass(frozen=True, slots=True)
class Engine:
    """The syntax of an engine, as far as the templates need it."""

    struct: str  # of elements and dimensions
    field: str  # of such a struct
    at: str  # an element of a list, by its number
    size: str
    let: str  # a text with a value under a name
    concat: str
    selected: str  # the elements of a list with some numbers
    each: str  # of a list of numbers
    flattened: str
    list: str
    error: str

    def array(self, elements: str, dimensions: str) -> str:
        return self.struct.format(elements, dimensions)

    def elements(self, argument: str) -> str:
        return self.field.format(argument, "elements")

    def dimensions(self, argument: str) -> str:
        return self.field.format(argument, "dimensions")

    def dimension(self, argument: str, number: str) -> str:
        """Returns a number of an array's dimensions."""
        return self.at.format(self.dimensions(argument), number)

    def lower(self, argument: str, number: str) -> str:
        """Returns the lower bound of a dimension."""
        return self.dimension(argument, f"1 + {self.dimension(argument, '1')} + {number}")

    def length(self, argument: str, number: str) -> str:
        return self.dimension(argument, f"1 + {number}")

    def fails(self, sqlstate: str, message: str) -> str:
        return (spark_error if self.error == "spark" else duckdb_error)(sqlstate, message)


SPARK = Engine(
    struct="named_struct('elements', {}, 'dimensions', {})",
    field="{}.{}",
    at="get({}, {} - 1)",
    size="size({})",
    let="element_at(transform(array({value}), {name} -> {text}), 1)",
    concat="concat({}, {})",
    selected="transform({numbers}, tg_n -> get({list}, tg_n - 1))",
    each="transform({list}, tg_n -> {text})",
    flattened="flatten({})",
    list="array({})",
    error="spark",
)
DUCKDB = Engine(
    struct="{{'elements': {}, 'dimensions': {}}}",
    field="struct_extract({}, '{}')",
    at="{}[{}]",
    size="CAST(len({}) AS INTEGER)",
    let="list_transform([{value}], lambda {name}: {text})[1]",
    concat="list_concat({}, {})",
    selected="list_transform({numbers}, lambda tg_n: {list}[tg_n])",
    each="list_transform({list}, lambda tg_n: {text})",
    flattened="flatten({})",
    list="[{}]",
    error="duckdb",
)
ENGINES = (SPARK, DUCKDB)


def _made(engine: Engine, elements: str) -> str:
    """Returns an array of one dimension from 1."""
    size = engine.size.format("tg_l")
    shape = f"CASE WHEN {size} = 0 THEN {engine.list.format('0')} ELSE {engine.list.format(f'1, {size}, 1')} END"
    return engine.let.format(value=elements, name="tg_l", text=f"CASE WHEN tg_l IS NOT NULL THEN {engine.array('tg_l', shape)} END")


def _resized(engine: Engine, elements: str, low: str) -> str:
    """Returns an array of one dimension from a lower bound."""
    size = engine.size.format("tg_l")
    shape = f"CASE WHEN {size} = 0 THEN {engine.list.format('0')} ELSE {engine.list.format(f'1, {size}, {low}')} END"
    return engine.let.format(value=elements, name="tg_l", text=engine.array("tg_l", shape))


# --- casts ---------------------------------------------------------------------------------------


def _cast(name: str, result: str, templates: tuple[str, str]) -> Function:
    spark, duckdb = templates
    return Function(name, (ARRAY,), result, spark, f"CAST({duckdb} AS {{type}})", "cast", strict=False)


def _as_list(engine: Engine) -> str:
    count, low = engine.dimension("{0}", "1"), engine.dimension("{0}", "3")
    return (
        f"(CASE WHEN {count} = 0 OR ({count} = 1 AND {low} = 1) THEN {engine.elements('{0}')}"
        f" WHEN {{0}} IS NOT NULL THEN {engine.fails('0A000', MULTIDIMENSIONAL)} END)"
    )


FROM_LIST = _cast("cast", ARRAY, (_made(SPARK, "{0}"), _made(DUCKDB, "{0}")))
TO_LIST = _cast("cast", ARRAY, (_as_list(SPARK), _as_list(DUCKDB)))
_ELEMENTS = [engine.elements("{0}") for engine in ENGINES]
ELEMENTS = Function("elements", (ARRAY,), ARRAY, _ELEMENTS[0], _ELEMENTS[1])
_PARTS = [f"({engine.elements('{0}')}, {engine.dimensions('{0}')})" for engine in ENGINES]
_TO_TEXT, _TO_JSON = (tuple(f"tg_dimensions_to_{form}{parts}" for parts in _PARTS) for form in ("text", "json"))
TO_TEXT = Function("cast", ("text[]",), "text", _TO_TEXT[0], _TO_TEXT[1], "cast", context="assignment")
_FROM_TEXT = "tg_array_text_elements({0})", "tg_array_text_dimensions({0})"
FROM_TEXT = Function(
    "cast",
    ("text",),
    "text[]",
    f"(CASE WHEN {{0}} IS NOT NULL THEN {SPARK.array(*_FROM_TEXT)} END)",
    f"(CASE WHEN {{0}} IS NOT NULL THEN {DUCKDB.array(*_FROM_TEXT)} END)",
    "cast",
)
TO_JSON = Function("array_to_json", ("json[]",), "json", _TO_JSON[0], _TO_JSON[1])


def each(function: Function, array: Type, target: str) -> Function:
    """Returns the cast of arrays of a type, from the cast of their elements."""
    row = arrays.each(function, array.name, target)
    return keeping(row) if array.multidimensional else row


def keeping(function: Function) -> Function:
    """Returns a function whose result has the dimensions of its first argument, from one that computes a list of as many elements."""
    spark, duckdb = (
        f"(CASE WHEN {{0}} IS NOT NULL THEN {engine.array(_over_elements(engine, template), engine.dimensions('{0}'))} END)"
        for engine, template in zip(ENGINES, (function.spark, function.duckdb), strict=True)
    )
    return replace(function, spark=spark if function.spark else "", duckdb=duckdb)


def _over_elements(engine: Engine, template: str) -> str:
    """Returns a template whose first argument is the list of an array's elements."""
    return template.replace("{0}", engine.elements("{0}"))


# --- constructors, subscripts, slices ------------------------------------------------------------


@cache
def construction(count: int) -> Function:
    """Returns ARRAY[…] of arrays."""
    items = [f"{{{n}}}" for n in range(count)]
    spark, duckdb = (_nested(engine, engine.list.format(", ".join(items)), "nested") for engine in ENGINES)
    return Function("ARRAY", (ARRAY,) * count, ARRAY, spark, duckdb, strict=False)


def _nested(engine: Engine, values: str, of: str) -> str:
    elements = engine.flattened.format(engine.each.format(list="tg_l", text=f"coalesce(tg_n.elements, {_empty(engine)})"))
    shape = f"tg_dimensions_{of}({engine.each.format(list='tg_l', text='tg_n.dimensions')})"
    return engine.let.format(value=values, name="tg_l", text=f"CASE WHEN tg_l IS NOT NULL THEN {engine.array(elements, shape)} END")


def _empty(engine: Engine) -> str:
    return engine.list.format("")


COLLECTED = _nested(DUCKDB, "list({distinct}{0}{order}){filter}", "accumulated")  # array_agg of arrays


@cache
def subscript(count: int) -> Function:
    """Returns a[i][j] with a number of subscripts."""
    numbers = ", ".join(f"{{{n}}}" for n in range(1, count + 1))
    spark, duckdb = (
        engine.at.format(engine.elements("{0}"), f"tg_dimensions_place({engine.dimensions('{0}')}, {engine.list.format(numbers)})")
        for engine in ENGINES
    )
    return Function("[]", (ARRAY, *("int4",) * count), "anyelement", spark, f"CAST({duckdb} AS {{type}})", strict=False)


@cache
def slices(count: int) -> Function:
    """Returns a[i:j][k:l] with a number of slices. The arguments are all lower bounds, then all upper bounds."""
    lows, highs = (", ".join(f"{{{n}}}" for n in range(first, first + count)) for first in (1, 1 + count))
    any_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(2 * count + 1))
    spark, duckdb = (
        f"(CASE WHEN {any_null} THEN NULL ELSE {_sliced(engine, engine.list.format(lows), engine.list.format(highs))} END)"
        for engine in ENGINES
    )
    return Function("[:]", (ARRAY, *("int4",) * (2 * count)), ARRAY, spark, f"CAST({duckdb} AS {{type}})", strict=False)


def _sliced(engine: Engine, lows: str, highs: str) -> str:
    shape = engine.dimensions("{0}")
    numbers = f"tg_dimensions_selected({shape}, {lows}, {highs})"
    elements = engine.selected.format(numbers=numbers, list=engine.elements("{0}"))
    return engine.array(elements, f"tg_dimensions_sliced({shape}, {lows}, {highs})")


# --- functions and operators ---------------------------------------------------------------------

# by kind, name and which arguments are arrays (a) or not (e): functions that depend on the elements alone
OF_ELEMENTS = {
    *(("operator", sign, "aa") for sign in ("@>", "<@", "&&")),
    ("function", "cardinality", "a"),
    ("function", "array_to_string", "ae"),
    ("function", "array_to_string", "aee"),
    ("set", "unnest", "a"),
}


def _compared(sign: str) -> tuple[str, str]:
    if sign in ("=", "<>"):
        return f"({{0}} {sign} {{1}})", f"({{0}} {sign} {{1}})"
    sides = (SPARK.struct.format(NULLS_LAST % n, f"{{{n}}}.dimensions") for n in (0, 1))
    return strict(f"({f' {sign} '.join(sides)})", 2), nested_duckdb(sign, "{0}", "{1}")


def _within(engine: Engine, value: str) -> str:
    """Returns a value for a dimension {1} that exists, else NULL."""
    return f"(CASE WHEN {{1}} BETWEEN 1 AND {engine.dimension('{0}', '1')} THEN {value} END)"


def _added(engine: Engine, array: str, element: str, *, last: bool) -> str:
    """Returns an array of one dimension with one more element. The lower bound remains."""
    one = engine.list.format(element)
    old = engine.elements(array)
    elements = engine.concat.format(*((old, one) if last else (one, old)))
    low = f"coalesce({engine.dimension(array, '3')}, 1)"
    shape = engine.list.format(f"1, {engine.size.format(old)} + 1, {low}")
    return (
        f"(CASE WHEN {array} IS NULL THEN {engine.array(one, engine.list.format('1, 1, 1'))}"
        f" WHEN {engine.dimension(array, '1')} > 1 THEN {engine.fails('22000', NOT_A_LIST)} ELSE {engine.array(elements, shape)} END)"
    )


def _concatenated(engine: Engine) -> str:
    elements = engine.concat.format(engine.elements("{0}"), engine.elements("{1}"))
    shape = f"tg_dimensions_concatenated({engine.dimensions('{0}')}, {engine.dimensions('{1}')})"
    both = engine.array(elements, shape)
    return f"(CASE WHEN {{0}} IS NULL THEN {{1}} WHEN {{1}} IS NULL THEN {{0}} ELSE {both} END)"


def _trimmed(engine: Engine) -> str:
    length = f"coalesce({engine.dimension('{0}', '2')}, 0)"
    low = engine.lower("{0}", "1")
    part = _sliced(engine, engine.list.format(low), engine.list.format(f"{low} + {length} - {{1}} - 1"))
    return (
        f"(CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {{1}} < 0 OR {{1}} > {length} THEN"
        f" {engine.fails('2202E', INVALID_TRIM)} WHEN {length} = 0 THEN {{0}} ELSE {part} END)"
    )


def _subscripts(engine: Engine) -> str:
    low, length = engine.lower("{0}", "{1}"), engine.length("{0}", "{1}")
    if engine is SPARK:
        return _within(engine, f"sequence({low}, {low} + {length} - 1)")
    return _within(engine, f"CAST(range({low}, {low} + {length}) AS INTEGER[])")


def _reversed(engine: Engine) -> str:
    subscripts = _subscripts(engine)
    reverse = "reverse" if engine is SPARK else "list_reverse"
    return f"(CASE {{2}} WHEN true THEN {reverse}({subscripts}) WHEN false THEN {subscripts} END)"


_APPENDED, _PREPENDED = (
    tuple(_added(engine, array, element, last=last) for engine in ENGINES)
    for array, element, last in (("{0}", "{1}", True), ("{1}", "{0}", False))
)
# templates of Spark and DuckDB
TEMPLATES: dict[tuple[str, str, str], tuple[str, ...]] = {
    **{("operator", sign, "aa"): _compared(sign) for sign in SIGNS},
    **{("aggregate", name, "a"): ("maintained", f"{name}({{0}}){{filter}}") for name in ("min", "max")},
    ("function", "array_ndims", "a"): tuple(f"nullif({engine.dimension('{0}', '1')}, 0)" for engine in ENGINES),
    ("function", "array_dims", "a"): tuple(f"tg_dimensions_text({engine.dimensions('{0}')})" for engine in ENGINES),
    ("function", "array_length", "ae"): tuple(_within(engine, engine.length("{0}", "{1}")) for engine in ENGINES),
    ("function", "array_lower", "ae"): tuple(_within(engine, engine.lower("{0}", "{1}")) for engine in ENGINES),
    ("function", "array_upper", "ae"): tuple(
        _within(engine, f"{engine.lower('{0}', '{1}')} + {engine.length('{0}', '{1}')} - 1") for engine in ENGINES
    ),
    ("set", "generate_subscripts", "ae"): tuple(map(_subscripts, ENGINES)),
    ("set", "generate_subscripts", "aee"): tuple(map(_reversed, ENGINES)),
    **{key: tuple(map(_concatenated, ENGINES)) for key in (("operator", "||", "aa"), ("function", "array_cat", "aa"))},
    **dict.fromkeys((("operator", "||", "ae"), ("function", "array_append", "ae")), _APPENDED),
    **dict.fromkeys((("operator", "||", "ea"), ("function", "array_prepend", "ea")), _PREPENDED),
    ("function", "trim_array", "ae"): tuple(map(_trimmed, ENGINES)),
}


def _searched(row: Function) -> Function:
    """Returns array_position or array_positions: the places of a list, counted from the lower bound."""
    templates = []
    for engine, template in zip(ENGINES, (row.spark, row.duckdb), strict=True):
        low = engine.dimension("{0}", "3")
        places = _over_elements(engine, template).replace("{2}", f"({{2}} - {low} + 1)")
        result = engine.each.format(list=places, text=f"tg_n + {low} - 1") if row.name == "array_positions" else f"({places} + {low} - 1)"
        several = f"{engine.dimension('{0}', '1')} > 1"
        templates.append(f"(CASE WHEN {several} THEN {engine.fails('0A000', NO_SEARCH)} WHEN {{0}} IS NOT NULL THEN {result} END)")
    return replace(row, spark=templates[0] if row.spark else "", duckdb=templates[1])


def _removed(row: Function) -> Function:
    templates = []
    for engine, template in zip(ENGINES, (row.spark, row.duckdb), strict=True):
        rest = _resized(engine, _over_elements(engine, template), engine.dimension("{0}", "3"))
        several = f"{engine.dimension('{0}', '1')} > 1"
        templates.append(f"(CASE WHEN {several} THEN {engine.fails('0A000', NO_REMOVAL)} WHEN {{0}} IS NOT NULL THEN {rest} END)")
    return replace(row, spark=templates[0] if row.spark else "", duckdb=templates[1])


OVER_TEMPLATES = {
    ("function", "array_position", "ae"): _searched,
    ("function", "array_position", "aee"): _searched,
    ("function", "array_positions", "ae"): _searched,
    ("function", "array_remove", "ae"): _removed,
    ("function", "array_replace", "aee"): keeping,
}


def signature(function: Function) -> tuple[str, str, str]:
    return function.kind, function.name, "".join("a" if name.endswith("[]") else "e" for name in function.arguments)


def has_template(function: Function) -> bool:
    """Returns whether a function takes multidimensional arrays."""
    return signature(function) in TEMPLATES or signature(function) in OVER_TEMPLATES


def multidimensional(function: Function) -> Function:
    """Returns a row with the templates for multidimensional arrays."""
    key = signature(function)
    if key in OVER_TEMPLATES:
        return OVER_TEMPLATES[key](function)
    spark, duckdb = TEMPLATES[key]
    return replace(function, spark=spark, duckdb=duckdb, exact=("", ""))


NULL_FILL = "22004", "dimension array or low bound array cannot be null"


def _fill(count: int, dimensions: str) -> tuple[str, str]:
    """Returns the templates of array_fill() with a number of arguments after the value. `dimensions`: SQL of the result's."""
    any_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(1, count + 1))
    size = "CASE WHEN tg_d[1] = 0 THEN 0 ELSE CAST(list_product(tg_d[2:tg_d[1] + 1]) AS BIGINT) END"
    lists = (
        "array_repeat({0}, aggregate(slice(tg_d, 2, tg_d[0]), CAST(tg_d[0] > 0 AS INT), (tg_a, tg_n) -> tg_a * tg_n))",
        DUCKDB.let.format(value="{0}", name="tg_v", text=f"list_transform(range({size}), lambda tg_x: tg_v)"),
    )
    templates = []
    for engine, elements in zip(ENGINES, lists, strict=True):
        array = engine.let.format(value=dimensions, name="tg_d", text=engine.array(elements, "tg_d"))
        templates.append(f"(CASE WHEN {any_null} THEN {engine.fails(*NULL_FILL)} ELSE {array} END)")
    return templates[0], templates[1]


# by the number of arguments; in earlier views, array_fill() returns arrays of one dimension from 1
FILLS = {2: _fill(1, "tg_dimensions_filled({1})"), 3: _fill(2, "tg_dimensions_filled_from({1}, {2})")}
