"""Parses type names: `int`, `numeric(10, 2)`, `timestamp(3) with time zone`, `text[]`, `schema.name`.

The result is an exp.DataType of type USERDEFINED. Its `kind` is the internal name of the type (int4,
bpchar, …), its `expressions` are the modifiers, and its `values` has one literal per array dimension.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake import keywords
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.grammar.names import is_name, label, place
from tailgate.sql.lexer.tokens import Cursor

# SQL names of types → internal names; other names are looked up unchanged
BUILT_IN = {
    "int": "int4",
    "integer": "int4",
    "smallint": "int2",
    "bigint": "int8",
    "real": "float4",
    "boolean": "bool",
    "decimal": "numeric",
    "dec": "numeric",
    "numeric": "numeric",
}
WITHOUT_MODIFIERS = ("int", "integer", "smallint", "bigint", "real", "boolean")
CHARACTER = ("character", "char", "nchar", "varchar")
FLOAT_BITS_MAX = 53  # of float8
INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")


def type_name(cursor: Cursor) -> exp.DataType:
    """Parses a type name."""
    cursor.accept_word("setof")
    node = simple_type(cursor)
    bounds = []
    if cursor.accept_word("array"):
        bounds.append(exp.Literal.number(-1))
        if cursor.accept("["):
            cursor.integer()
            cursor.expect("]")
    while cursor.accept("["):
        if not cursor.at("]"):
            cursor.integer()
        cursor.expect("]")
        bounds.append(exp.Literal.number(-1))
    if bounds:
        node.set("values", bounds)
    return node


def simple_type(cursor: Cursor) -> exp.DataType:
    """Parses a type name without array bounds."""
    token = cursor.token
    word = token.value if token.kind == "word" else None
    if word in BUILT_IN:
        cursor.advance()
        return _type(BUILT_IN[word], token.position, [] if word in WITHOUT_MODIFIERS else _modifiers(cursor))
    match word:
        case "double":
            if cursor.at_word("double", "precision"):
                cursor.accept_word("double", "precision")
                return _type("float8", token.position)
        case "float":
            cursor.advance()
            bits, at = FLOAT_BITS_MAX, token.position
            if cursor.accept("("):
                at, bits = cursor.token.position, cursor.integer()
                cursor.expect(")")
            if not 1 <= bits <= FLOAT_BITS_MAX:
                limit = "at least 1 bit" if bits < 1 else f"less than {FLOAT_BITS_MAX + 1} bits"
                raise InvalidParameterValue(f"precision for type float must be {limit}", position=at)
            return _type("float4" if bits <= 24 else "float8", token.position)
        case "bit":
            cursor.advance()
            varying = cursor.accept_word("varying")
            modifiers = _modifiers(cursor)
            if not varying and not modifiers:
                return _one("bit", token.position)
            return _type("varbit" if varying else "bit", token.position, modifiers)
        case "character" | "char" | "nchar" | "varchar" | "national":
            if cursor.accept_word("national") and not cursor.at_word("character") and not cursor.at_word("char"):
                raise cursor.error()
            varying = cursor.advance().value == "varchar" or cursor.accept_word("varying")
            modifiers = _modifiers(cursor)
            if not varying and not modifiers:
                return _one("bpchar", token.position)
            return _type("varchar" if varying else "bpchar", token.position, modifiers)
        case "time" | "timestamp":
            cursor.advance()
            digits = _precision(cursor)
            zone = cursor.accept_word("with", "time", "zone")
            if not zone:
                cursor.accept_word("without", "time", "zone")
            return _type(word + ("tz" if zone else ""), token.position, digits)
        case "interval":
            cursor.advance()
            node = _type("interval", token.position, _precision(cursor))
            return node if node.expressions else interval_fields(cursor, node)
    if not is_name(token, keywords.RESERVED | keywords.COLUMN):
        raise cursor.error()
    name = cursor.advance().value
    schema = None
    while cursor.accept("."):
        schema, name = name, label(cursor).name
    if token.kind == "word" and schema is None and name == "string":
        name = "text"
    node = _type(name, token.position, _modifiers(cursor))
    if schema is not None:
        node.meta["schema"] = schema
    return node


def clock_type(cursor: Cursor, name: str) -> exp.DataType:
    """Parses the digits of CURRENT_TIMESTAMP(3) and the like. Returns the type that has them."""
    position = cursor.token.position
    return _type(name, position, _precision(cursor))


def interval_fields(cursor: Cursor, node: exp.DataType) -> exp.DataType:
    """Parses the fields of an interval, such as YEAR or DAY TO SECOND(3), if they follow.

    Adds them, and the digits of the second, to the node of the type, and returns the node.
    """
    first = cursor.any_word(*INTERVAL_FIELDS)
    if first is None:
        return node
    text = first
    if cursor.accept_word("to"):
        last = cursor.any_word(*INTERVAL_FIELDS)
        if last is None:
            raise cursor.error()
        text += " to " + last
    node.meta["fields"] = text
    if text.endswith("second"):
        node.set("expressions", _precision(cursor))
    return node


def _type(name: str, position: int, modifiers: list[exp.Expr] | None = None) -> exp.DataType:
    return place(exp.DataType(this=exp.DType.USERDEFINED, kind=name, expressions=modifiers or []), position)


def _one(name: str, position: int) -> exp.DataType:
    """Returns a type that has the length 1, unless it is the type of a literal."""
    node = _type(name, position, [exp.Literal.number(1)])
    node.meta["implied"] = True
    return node


def _precision(cursor: Cursor) -> list[exp.Expr]:
    """Parses [( n )], the number of fractional digits."""
    if not cursor.accept("("):
        return []
    digits = exp.Literal.number(cursor.integer())
    cursor.expect(")")
    return [digits]


def _modifiers(cursor: Cursor) -> list[exp.Expr]:
    """Parses [( n, … )]. Modifiers are integers; the scale of a numeric may be negative."""
    modifiers: list[exp.Expr] = []
    if cursor.accept("("):
        while True:
            negative = cursor.accept("-")
            modifiers.append(exp.Literal.number(-cursor.integer() if negative else cursor.integer()))
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return modifiers
