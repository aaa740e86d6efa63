"""Substitution of variables: `${name}` in a text becomes the value of the variable.

Outside of quotes a value is one token: a name, a number, or a text in quotes. Inside of quotes it may be any text.
`$${name}` is the text `${name}`. Comments are left as they are.

Source: ksqlDB 0.29, documentation, "Substitute variables".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from tailgate.lake.errors import InvalidParameterValue, UndefinedObject
from tailgate.sql.ksqldb.tokens import tokens

REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
TOKENS = ("word", "quoted", "string", "integer", "decimal")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def substituted(text: str, variables: Mapping[str, str]) -> str:
    """Returns a text with the values of its variables, whose names are not case-sensitive. Raises 42704 or 22023.

    >>> substituted("SELECT ${c} FROM t WHERE name = '${n}'", {"c": "id", "n": "it's"})
    "SELECT id FROM t WHERE name = 'it''s'"
    """
    if "${" not in text:
        return text
    values = {name.lower(): value for name, value in variables.items()}
    parts, end = [], 0
    for token in tokens(text):
        if token.kind in ("string", "quoted", "parameter"):
            quote = "" if token.kind == "parameter" else token.text[0]
            value = partial(_value, values=values, quote=quote, position=token.position)
            parts += [text[end : token.position], REFERENCE.sub(value, token.text)]
            end = token.end
    return "".join([*parts, text[end:]])


def _value(match: re.Match[str], values: Mapping[str, str], quote: str, position: int) -> str:
    """Returns the value of a reference. `quote`: the quote that the reference is inside of, or ''."""
    escape, name = match.groups()
    if escape:
        return match.group()[1:]
    value = values.get(name.lower())
    if value is None:
        raise UndefinedObject(f'variable "{name}" is not defined', hint=f"DEFINE {name} = 'value'.", position=position)
    if quote:
        return value.replace(quote, quote * 2)
    parts = tokens(value)
    if len(parts) != 2 or parts[0].kind not in TOKENS:
        raise InvalidParameterValue(
            f'invalid value for variable "{name}": {value}', hint="Use a name, a number, or a text in quotes.", position=position
        )
    return value


def check_name(name: str) -> None:
    """Raises 22023 unless a variable can have this name."""
    if not NAME.fullmatch(name):
        raise InvalidParameterValue(f'invalid name of a variable: "{name}"')
