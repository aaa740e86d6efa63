"""The text of a column's default, as PostgreSQL prints constants, keywords and calls without arguments; others are shown as typed.

    DEFAULT '{}'        '{}'::jsonb          DEFAULT FALSE     false
    DEFAULT -1          '-1'::integer        DEFAULT now()     now()

Source: PostgreSQL 15, src/backend/utils/adt/ruleutils.c (get_const_expr, T_SQLValueFunction).
"""

from __future__ import annotations

import re

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.dropping import SEQUENCE
from tailgate.lake.errors import TailgateError
from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import FACTS, Field, Type
from tailgate.values.numbers.integers import RANGES
from tailgate.values.registry import read_text, text_writer

LITERAL = re.compile(r"('(?:[^']|'')*')(?:\s*::\s*([\w ]+?)((?:\[\])?))?")  # of a text, possibly with a cast
NUMBER = re.compile(r"(-?)\s*(\d+(?:\.\d+)?)")
KEYWORD = re.compile(r"(?:current_(?:date|time|timestamp|role|user|catalog|schema)|localtime(?:stamp)?|(?:session_)?user)(?:\(\d\))?", re.I)
CALL = re.compile(r"[a-z]\w*\(\)", re.I)
NULL = re.compile(r"\s*NULL\s*", re.I)  # a default that PostgreSQL does not store
CHANGING = ("now", "today", "tomorrow", "yesterday")  # texts of times that are evaluated for each row here
NAMES = {"bpchar": "bpchar", "bit": '"bit"'}  # types without a length have another name than in format_type()


def shown_default(text: str, column: Field, catalog: Catalog) -> str:
    """Returns the text of a column's default, with the names of sequences in place of their ids."""
    text = text.strip()
    if (literal := LITERAL.fullmatch(text)) and _is_of(column.type, literal[2], literal[3]):
        return _constant(literal[1][1:-1].replace("''", "'"), column.type, catalog)
    if number := NUMBER.fullmatch(text):
        return _number(number[1], number[2])
    if text.lower() in ("true", "false") or CALL.fullmatch(text):
        return text.lower()
    if KEYWORD.fullmatch(text):
        return text.upper()
    return SEQUENCE.sub(lambda match: _sequence(int(match[1]), catalog), text)


def _is_of(type: Type, cast: str | None, array: str | None) -> bool:
    """Returns whether a literal is of the column's type: it has no cast, or one to this type."""
    return cast is None or (cast.lower() in (type.name, FACTS[type.name].sql) and bool(array) == type.is_array)


def _constant(value: str, type: Type, catalog: Catalog) -> str:
    """Returns a value of a type as a literal."""
    if type.enum is not None:
        name = catalog.name_of(catalog[type.enum.id]).sql
    elif type.composite is not None:
        name = catalog.name_of(catalog[type.composite.id]).sql
    else:
        name = NAMES.get(type.name, FACTS[type.name].sql)
        value = _canonical(value, Type(type.name, is_array=type.is_array))
    if not type.is_array and type.name == "bool":
        return value
    if not type.is_array and type.name in ("int4", "numeric") and (number := NUMBER.fullmatch(value)):
        return value if not number[1] and ("." in value) == (type.name == "numeric") else f"'{value}'::{name}"
    return f"{quoted_text(value)}::{name}{'[]' * type.is_array}"


def _canonical(value: str, type: Type) -> str:
    """Returns a text of a value in the form of the type's output. Numerics, which have several forms, stay as they are."""
    if type.name == "numeric" or value.strip().lower() in CHANGING:
        return value
    try:
        read = read_text(value, type)
    except TailgateError:
        return value  # in a table of an earlier version, which accepted it
    if isinstance(read, bool):
        return "true" if read else "false"
    return read if isinstance(read, str) else text_writer(type)(read).decode()


def _number(sign: str, digits: str) -> str:
    """Returns a number. One with a sign is quoted, and so is a large integer."""
    if not sign and "." in digits:
        return digits
    smallest, largest = RANGES["int4"]
    number = None if "." in digits else int(sign + digits)
    if number is not None and smallest <= number <= largest:
        return digits if not sign else f"'-{digits}'::integer"
    smallest, largest = RANGES["int8"]
    return f"'{sign}{digits}'::{'bigint' if number is not None and smallest <= number <= largest else 'numeric'}"


def _sequence(id: int, catalog: Catalog) -> str:
    shown = catalog.name_of(catalog[id]).sql if id in catalog.items else str(id)
    return quoted_text(shown) + "::regclass"
