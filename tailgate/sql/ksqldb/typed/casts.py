"""CAST(value AS type).

Source: ksqlDB 0.29, documentation, "Scalar functions", section "CAST".
"""

from __future__ import annotations

from tailgate.lake.errors import CannotCoerce, FeatureNotSupported
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.typed.values import Typed, coerced, literal

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
UNWRITTEN = ("bytes", "date", "time", "timestamp")
WHOLE, FRACTIONAL = ("int", "bigint"), ("decimal", "double")
TIMES = (("timestamp", "date"), ("timestamp", "time"), ("date", "timestamp"))


def cast(value: Typed, target: TypeName, position: int) -> Typed:
    """Returns the value of a cast. Raises 42846 for types between which there is none."""
    source, name = value.type, target.name
    types.check(target)
    postgresql = types.postgresql(target)
    if source in (target, types.UNKNOWN):
        return coerced(value, target)
    if name in types.STRUCTURES and source.name == name:
        return Typed(f"ksqldb_convert({value.text}, {literal(types.descriptor(target))})", target, may_fail=True)
    if name == "varchar" and source.name in types.STRUCTURES:
        _check_shown(source, position)
        return Typed(f"ksqldb_nested_text({value.text}, {literal(types.descriptor(source))})", target, may_fail=True)
    if name == "varchar" and source.name in TEXTS:
        return Typed(TEXTS[source.name].replace("{0}", value.text), target, value.may_fail)
    if source == types.VARCHAR and name == "boolean":
        return Typed(f"(lower({value.text}) = 'true')", target, value.may_fail)
    is_number = source.name in types.NUMBERS and name in types.NUMBERS
    if is_number and source.name in FRACTIONAL and name in WHOLE:
        return Typed(f"CAST(trunc({value.text}) AS {postgresql})", target, may_fail=True)
    if is_number or (source.name, name) in TIMES or (source == types.VARCHAR and name not in ("bytes", *types.STRUCTURES)):
        # a literal is text first, because PostgreSQL refuses a statement whose literal is not a value of the type
        text = f"CAST({value.text} AS text)" if value.text.startswith("'") else value.text
        return Typed(f"CAST({text} AS {postgresql})", target, value.may_fail or not types.widens(source, target))
    raise CannotCoerce(f"Cast of {types.shown(source)} to {types.shown(target)} is not supported", position=position)


def _check_shown(type: TypeName, position: int) -> None:
    """Raises 0A000 for a type whose values inside an array, map or structure are not written as text."""
    if type.name in UNWRITTEN:
        raise FeatureNotSupported(f"Cast of a value with {types.shown(type)} inside to VARCHAR(STRING) is not supported", position=position)
    for inner in type.arguments:
        _check_shown(inner, position)
