"""Sort keys of types whose stored form does not compare like the value.

'1 day' equals '24 hours', 1.0 equals 1 in jsonb and numranges, and char(n) ignores trailing blanks. jsonb is ordered by
its contents. In a row, NULL is above all other values. Two values are equal if and only if their
sort keys are, so `sql.plan.grouping` also groups rows by sort keys.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.types import BOOL, BYTEA, TEXT, Field, Type, numeric
from tailgate.sql.functions.comparison import INTERVAL_DUCKDB, INTERVAL_SPARK, NUMMULTIRANGE, NUMRANGE_DUCKDB, NUMRANGE_SPARK
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.json import COMPARED
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.plan import Call, IsNull, Scalar, SortKey
from tailgate.sql.plan.rows import fields, is_row, row, unless_null

GENERAL_KEY = Type("record", fields=(Field("f1", numeric(0)), Field("f2", BYTEA)))
EQUAL_KEYS = Function("=", ("record", "record"), "bool", "({0} = {1})", "({0} = {1})", "operator")  # of two sort keys of type GENERAL_KEY
ORDERS: dict[str, tuple[Function, Type]] = {
    "interval": (
        Function("order", ("interval",), "numeric", INTERVAL_SPARK.replace("%d", "0"), INTERVAL_DUCKDB.replace("%d", "0")),
        numeric(0),
    ),
    "bpchar": (Function("order", ("bpchar",), "text", "rtrim({0})", "rtrim({0}, ' ')"), TEXT),
    # of a general numeric: the value rounded down, and its bytes if it is another one
    "numeric": (
        Function("order", ("numeric",), "record", "tg_general_key({0})", "tg_general_key_any({0})", takes_general=True),
        GENERAL_KEY,
    ),
    "numrange": (
        Function("order", ("numrange",), "bytea", NUMRANGE_SPARK.replace("%d", "0"), NUMRANGE_DUCKDB.replace("%d", "0")),
        BYTEA,
    ),
    "nummultirange": (
        Function("order", ("nummultirange",), "bytea", NUMMULTIRANGE.replace("%d", "0"), NUMMULTIRANGE.replace("%d", "0")),
        BYTEA,
    ),
    "jsonb": (Function("order", ("jsonb",), "bytea", COMPARED, COMPARED), BYTEA),
}
EQUAL_FORMS = ORDERS.keys() - {"numeric"}  # types whose equal values may have different stored forms, as those of a general numeric


def has_equal_forms(type: Type) -> bool:
    """Returns whether equal values of a type may have different stored forms."""
    return has_general(type) or not type.leaves.isdisjoint(EQUAL_FORMS)


def has_general(type: Type) -> bool:
    """Returns whether values of a type contain general numerics."""
    return type.general or any(has_general(f.type) for f in type.fields)


def sort_key(scalar: Scalar) -> Scalar:
    """Returns the sort key of a scalar, or the scalar itself if its stored form compares correctly.

    The sort key of an array is the array of the sort keys of its elements. That of a row has, for each
    field, whether it is NULL, and its sort key.
    """
    if is_row(scalar.type):
        keys = [key for field in fields(scalar) for key in (IsNull(field), sort_key(field))]
        return unless_null(scalar, row(keys))
    if scalar.type.name == "record":
        spark, duckdb, type = _key_of("{0}", "{0}", scalar.type)
        return Call(Function("order", ("record[]",), "record[]", spark, duckdb, strict=False), (scalar,), type)
    if not has_equal_forms(scalar.type):
        return scalar
    function, type = ORDERS[scalar.type.name]
    if not scalar.type.is_array:
        return Call(function, (scalar,), type)
    each = replace(multidimensional.each(function, scalar.type, type.name), name="order", kind="function")
    return Call(each, (scalar,), type.array(multidimensional=scalar.type.multidimensional))


def _key_of(spark: str, duckdb: str, type: Type, depth: int = 0) -> tuple[str, str, Type]:
    """Returns the templates of the sort key of a value, from those of the value, and the type of the key. `depth`: of arrays around it."""
    if type.multidimensional and (type.name == "record" or has_equal_forms(type)):
        pairs = zip(multidimensional.ENGINES, (spark, duckdb), strict=True)
        lists = [engine.elements(value) for engine, value in pairs]
        of_spark, of_duckdb, key = _key_of(lists[0], lists[1], type.array(), depth)
        both = zip(multidimensional.ENGINES, (spark, duckdb), (of_spark, of_duckdb), strict=True)
        arrays = [f"CASE WHEN {value} IS NOT NULL THEN {e.array(part, e.dimensions(value))} END" for e, value, part in both]
        return arrays[0], arrays[1], key.array(multidimensional=True)
    if type.is_array and (type.name == "record" or has_equal_forms(type)):
        variable = f"tg_o{depth}"
        of_spark, of_duckdb, key = _key_of(variable, variable, type.element, depth + 1)
        return f"transform({spark}, {variable} -> {of_spark})", f"list_transform({duckdb}, lambda {variable}: {of_duckdb})", key.array()
    if is_row(type):
        sparks, duckdbs, keys = [], [], list[Field]()
        for n, field in enumerate(type.fields, 1):
            values = f"{spark}.f{n}", f"struct_extract({duckdb}, 'f{n}')"
            of_spark, of_duckdb, key = _key_of(*values, field.type, depth)
            sparks.append(f"'f{2 * n - 1}', {values[0]} IS NULL, 'f{2 * n}', {of_spark}")
            duckdbs.append(f"f{2 * n - 1} := {values[1]} IS NULL, f{2 * n} := {of_duckdb}")
            keys += [Field(f"f{2 * n - 1}", BOOL), Field(f"f{2 * n}", key)]
        parts = f"named_struct({', '.join(sparks)})", f"struct_pack({', '.join(duckdbs)})"
        whole = [f"CASE WHEN {value} IS NULL THEN NULL ELSE {part} END" for value, part in zip((spark, duckdb), parts, strict=True)]
        return whole[0], whole[1], Type("record", fields=tuple(keys))
    if not has_equal_forms(type):
        return spark, duckdb, type
    function, key = ORDERS[type.name]
    return function.spark.replace("{0}", spark), function.duckdb.replace("{0}", duckdb), key


def sorted_by(key: SortKey) -> SortKey:
    """Returns the key with `sort_key` applied to its expression."""
    return replace(key, expression=sort_key(key.expression))
