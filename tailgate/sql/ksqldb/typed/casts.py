"""CAST(value AS type).

Source: ksqlDB 0.29, documentation, "Scalar functions", section "CAST".
"""

from __future__ import annotations

from tailgate.lake.errors import CannotCoerce
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.typed.values import Typed, coerced, moment_of_varchar

ISO = "yyyy-MM-dd''T''HH:mm:ss.SSS"
# the text of a time has as many parts as it needs
TIME = (
    "CASE WHEN extract(second FROM {0}) = 0 THEN to_char({0}, 'HH24:MI') WHEN extract(milliseconds FROM {0}) % 1000 = 0"
    " THEN to_char({0}, 'HH24:MI:SS') ELSE to_char({0}, 'HH24:MI:SS.MS') END"
)
TEXTS = {
    "double": "ksqldb_double_text({0})",
    "time": TIME,
    "timestamp": f"ksqldb_format_timestamp({{0}}, '{ISO}', 'UTC')",
    **dict.fromkeys(("boolean", "int", "bigint", "decimal", "date"), "CAST({0} AS text)"),
}
# as in Java: a whole number keeps its lowest bits, a DOUBLE becomes the nearest whole number
NARROWING = {
    ("bigint", "int"): "ksqldb_wrapped({})",
    ("decimal", "int"): "ksqldb_wrapped(ksqldb_bigint_of_numeric({}))",
    ("decimal", "bigint"): "ksqldb_bigint_of_numeric({})",
    ("double", "int"): "ksqldb_int_of_double({})",
    ("double", "bigint"): "ksqldb_bigint_of_double({})",
}
TIMES = (("timestamp", "date"), ("timestamp", "time"), ("date", "timestamp"))


def cast(value: Typed, target: TypeName, position: int) -> Typed:
    """Returns the value of a cast. Raises 42846 for types between which there is none."""
    source, name = value.type, target.name
    types.check(target)
    postgresql = types.postgresql(target)
    if source in (target, types.UNKNOWN):
        return coerced(value, target)
    if name in types.STRUCTURES and source.name == name:
        _check_inside(source, target, position)
        descriptors = f"{quoted_text(types.descriptor(source))}, {quoted_text(types.descriptor(target))}"
        return Typed(f"ksqldb_cast({value.text}, {descriptors})", target, may_fail=True)
    if name == "varchar" and source.name in types.STRUCTURES:
        return Typed(f"ksqldb_nested_text({value.text}, {quoted_text(types.descriptor(source))})", target, may_fail=True)
    if name == "varchar" and source.name in TEXTS:
        return Typed(TEXTS[source.name].replace("{0}", value.text), target, value.may_fail)
    if source == types.VARCHAR and name == "boolean":
        return Typed(f"(lower({value.text}) = 'true')", target, value.may_fail)
    if source == types.VARCHAR and name in ("date", "time", "timestamp"):
        return moment_of_varchar(value, target)
    if (source, name) == (types.VARCHAR, "double"):
        return Typed(f"ksqldb_double({value.text})", target, may_fail=True)
    is_number = source.name in types.NUMBERS and name in types.NUMBERS
    if (source.name, name) in NARROWING:
        return Typed(NARROWING[source.name, name].format(value.text), target, value.may_fail)
    if is_number or (source.name, name) in TIMES or (source == types.VARCHAR and name not in ("bytes", *types.STRUCTURES)):
        # a literal is text first, because PostgreSQL refuses a statement whose literal is not a value of the type
        text = f"CAST({value.text} AS text)" if value.text.startswith("'") else value.text
        return Typed(f"CAST({text} AS {postgresql})", target, value.may_fail or not types.widens(source, target))
    raise CannotCoerce(f"Cast of {types.in_schema(source)} to {types.in_schema(target)} is not supported", position=position)


def _check_inside(source: TypeName, target: TypeName, position: int) -> None:
    """Raises 42846 for arrays, maps or structures whose values inside have no cast."""
    of_source = dict(zip(source.fields, source.arguments, strict=True)) if source.fields else {}
    for number, inner in enumerate(target.arguments):
        origin = of_source.get(target.fields[number]) if target.fields else source.arguments[number]
        if origin is not None:
            cast(Typed("", origin), inner, position)
