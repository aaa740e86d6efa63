"""Resolves type names in statements to types."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_, UndefinedObject
from tailgate.lake.intervals import FIELDS, FULL_PRECISION
from tailgate.lake.types import FACTS, MICROSECONDS, NUMERIC_PRECISION, EnumType, Type
from tailgate.sql.grammar.names import position
from tailgate.values.strings.registered import REGISTERED

# PostgreSQL's types that Tailgate does not support
KNOWN = frozenset(
    """
    xml point line lseg box path polygon circle tsvector tsquery regproc regprocedure regoper regoperator regnamespace
    regrole regconfig regdictionary regcollation xid cid tid pg_lsn oidvector int2vector hstore citext serial bigserial smallserial any
    anyelement anyarray
    """.split()
)
WITHOUT_NAME = ("record", "unknown", "enum", *REGISTERED)  # types that no statement can name, except in casts of constants
SYSTEM = "pg_catalog"  # the schema of PostgreSQL's types
LENGTHS_MAX = 10485760  # characters of varchar and bpchar, as in PostgreSQL
BITS_MAX = 8 * LENGTHS_MAX  # of bit and varbit
DECIMALS = f"A numeric has at most {NUMERIC_PRECISION} digits here, and its scale is between 0 and its precision."


def resolve(node: exp.DataType) -> Type:
    """Returns the type of a parsed type name. Raises 42704 if the type does not exist, and 0A000 if only PostgreSQL has it."""
    type = named_type(node)
    if type.enum is not None:
        raise unknown_type(node)
    return type


def unknown_type(node: exp.DataType) -> UndefinedObject:
    """Returns the error for a type that does not exist."""
    schema = node.meta.get("schema")
    shown = str(node.args["kind"]) if schema in (None, SYSTEM) else f"{schema}.{node.args['kind']}"
    return UndefinedObject(f'type "{shown}{"[]" * len(node.args.get("values") or [])}" does not exist', position=position(node))


def named_type(node: exp.DataType) -> Type:
    """Returns the type of a parsed type name, as `resolve` does.

    A name that is not one of a built-in type may be one of a user's type. It is an enum type with the id 0 until the name is looked
    up in the catalog.
    """
    name = str(node.args["kind"])
    at = position(node)
    schema = node.meta.get("schema", "")
    dimensions = len(node.args.get("values") or [])
    if name[:1] == "_" and name[1:] in FACTS and name[1:] not in WITHOUT_NAME and schema in ("", SYSTEM):
        name, dimensions = name[1:], dimensions + 1  # PostgreSQL's name of the array's type
    facts = FACTS.get(name)
    user_defined = facts is None or name == "enum" or schema not in ("", SYSTEM)
    if user_defined and schema in ("", SYSTEM) and (name in KNOWN or schema == SYSTEM):
        raise FeatureNotSupported(f"type {name} is not supported", position=at) if name in KNOWN else unknown_type(node)
    if not user_defined and name in WITHOUT_NAME:
        raise FeatureNotSupported(f"type {name} is not supported", position=at)
    modifiers = tuple(-int(m.this.name) if isinstance(m, exp.Neg) else int(m.name) for m in node.expressions)
    if user_defined:
        if modifiers:
            raise SyntaxError_(f'type modifier is not allowed for type "{node.args["kind"]}"', position=at)
        enum = EnumType(0, str(node.args["kind"]), schema)
        return Type("enum", is_array=dimensions > 0, enum=enum, multidimensional=dimensions > 1)
    checked = _modifiers(name, modifiers, at)
    if fields := node.meta.get("fields", ""):
        if fields not in FIELDS:
            raise SyntaxError_(f'syntax error at or near "{fields.rpartition(" ")[2]}"', position=at)
        checked = (checked[0] if checked else FULL_PRECISION, FIELDS[fields])
    general = name == "numeric" and bool(checked) and not is_decimal(*checked)
    if general and dimensions:
        raise FeatureNotSupported(f"numeric({checked[0]},{checked[1]})[] is not supported", hint=DECIMALS, position=at)
    return Type(name, checked, is_array=dimensions > 0, multidimensional=dimensions > 1, general=general)


def is_decimal(precision: int, scale: int) -> bool:
    """Returns whether the values of a declared numeric are decimals of 38 digits; otherwise they are general."""
    return precision <= NUMERIC_PRECISION and 0 <= scale <= precision


def _modifiers(name: str, modifiers: tuple[int, ...], at: int | None) -> tuple[int, ...]:
    """Checks the modifiers of a type and returns those to keep. Raises 42601, 22023 or 0A000 for others."""
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
            return precision, scale
        case "varchar" | "bpchar" | "bit" | "varbit":
            word = "char" if name == "bpchar" else name
            longest = BITS_MAX if name in ("bit", "varbit") else LENGTHS_MAX
            if len(modifiers) > 1:
                raise InvalidParameterValue("invalid type modifier", position=at)
            if modifiers[0] < 1:
                raise InvalidParameterValue(f"length for type {word} must be at least 1", position=at)
            if modifiers[0] > longest:
                raise InvalidParameterValue(f"length for type {word} cannot exceed {longest}", position=at)
            return modifiers
        case "timestamp" | "timestamptz" | "time" | "timetz" | "interval":
            if len(modifiers) > 1:
                raise InvalidParameterValue("invalid type modifier", position=at)
            if modifiers[0] < 0:
                zone = " WITH TIME ZONE" if name.endswith("tz") else ""
                shown = f"{name.removesuffix('tz').upper()}({modifiers[0]}){zone}"
                raise InvalidParameterValue(f"{shown} precision must not be negative", position=at)
            return (min(modifiers[0], MICROSECONDS),)
    raise SyntaxError_(f'type modifier is not allowed for type "{name}"', position=at)
