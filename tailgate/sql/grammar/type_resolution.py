"""Resolves type names in statements to types."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, UndefinedObject
from tailgate.lake.types import FACTS, MICROSECONDS, NUMERIC_PRECISION, Type
from tailgate.sql.grammar.names import position

# more names of types in PostgreSQL's catalog
ALIASES = {"char": "bpchar", "float": "float8"}
# PostgreSQL's types that Tailgate does not support
KNOWN = frozenset(
    """
    bit varbit money timetz xml cidr inet macaddr macaddr8 point line lseg box path polygon circle tsvector tsquery int4range int8range
    numrange tsrange tstzrange daterange regclass regtype regproc regprocedure regoper regoperator regnamespace regrole regconfig
    regdictionary regcollation xid cid tid pg_lsn oidvector int2vector hstore citext serial bigserial smallserial any anyelement anyarray
    """.split()
)
LENGTHS_MAX = 10485760  # characters of varchar and bpchar, as in PostgreSQL


def restricts(fields: str) -> bool:
    """Returns whether the fields of an interval type, such as `day to hour`, exclude parts of a value."""
    return bool(fields) and not fields.endswith("second")


def resolve(node: exp.DataType, *, value: bool = False) -> Type:
    """Returns the type of a parsed type name.

    `value`: the type is that of a cast, which may restrict an interval to some fields. Types of columns
    do not keep them. Raises 42704 if the type does not exist, and 0A000 if only PostgreSQL has it.
    """
    name = str(node.args["kind"])
    at = position(node)
    name = ALIASES.get(name, name)
    facts = FACTS.get(name)
    if facts is None or name in ("record", "unknown"):
        if name in KNOWN or facts is not None:
            raise FeatureNotSupported(f"type {name} is not supported", position=at)
        raise UndefinedObject(f'type "{name}" does not exist', position=at)
    modifiers = tuple(-int(m.this.name) if isinstance(m, exp.Neg) else int(m.name) for m in node.expressions)
    dimensions = len(node.args.get("values") or [])
    if dimensions > 1:
        raise FeatureNotSupported("arrays of more than one dimension are not supported", position=at)
    fields = node.meta.get("fields", "")
    if restricts(fields) and (dimensions or not value):
        hint = "Use the type interval, and date_trunc() for its values."
        raise FeatureNotSupported(f"type interval {fields}{'[]' * dimensions} is not supported", hint=hint, position=at)
    return Type(name, _modifiers(name, modifiers, at), is_array=dimensions == 1)


def _modifiers(name: str, modifiers: tuple[int, ...], at: int | None) -> tuple[int, ...]:
    """Checks the modifiers of a type and returns those to keep. Raises 22023 or 0A000 for others."""
    if not modifiers:
        return ()
    match name:
        case "numeric":
            if len(modifiers) > 2:
                raise InvalidParameterValue("invalid NUMERIC type modifier", position=at)
            precision, scale = (*modifiers, 0)[:2]
            if not 1 <= precision <= 1000:
                raise InvalidParameterValue(f"NUMERIC precision {precision} must be between 1 and 1000", position=at)
            if not -1000 <= scale <= 1000:
                raise InvalidParameterValue(f"NUMERIC scale {scale} must be between -1000 and 1000", position=at)
            if precision > NUMERIC_PRECISION or not 0 <= scale <= precision:
                raise FeatureNotSupported(
                    f"numeric({precision},{scale}) is not supported",
                    hint=f"A numeric has at most {NUMERIC_PRECISION} digits, and its scale is between 0 and its precision.",
                    position=at,
                )
            return precision, scale
        case "varchar" | "bpchar":
            word = "varchar" if name == "varchar" else "char"
            if len(modifiers) > 1:
                raise InvalidParameterValue("invalid type modifier", position=at)
            if modifiers[0] < 1:
                raise InvalidParameterValue(f"length for type {word} must be at least 1", position=at)
            if modifiers[0] > LENGTHS_MAX:
                raise InvalidParameterValue(f"length for type {word} cannot exceed {LENGTHS_MAX}", position=at)
            return modifiers
        case "timestamp" | "timestamptz" | "time" | "interval":
            if len(modifiers) > 1:
                raise InvalidParameterValue("invalid type modifier", position=at)
            return (min(modifiers[0], MICROSECONDS),)
    raise FeatureNotSupported(f'type modifier is not allowed for type "{name}"', position=at)
