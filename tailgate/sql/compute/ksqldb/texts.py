"""ksqlDB's functions of texts and bytes.

Source: ksqlDB 0.29, documentation, "Scalar functions", sections "Strings" and "Bytes".
"""

from __future__ import annotations

import base64
import binascii
import re
import struct

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import dump

ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}
WORD_OR_BLANK = re.compile(r"[ \t\n\v\f\r]|[^ \t\n\v\f\r]+")
PLAIN_MIN, PLAIN_MAX = 1e-3, 1e7  # Java writes other doubles with an exponent


@udf("text", to="text")
def ksqldb_initcap(text: str) -> str:
    """Returns the text with each word capitalized, in queries of earlier versions. Words are separated by spaces."""
    return " ".join(map(_capitalized, text.split(" ")))


@udf("text", to="text")
def ksqldb_capitalized(text: str) -> str:
    """Returns the text with each word capitalized. Words are separated by white space."""
    return "".join(map(_capitalized, WORD_OR_BLANK.findall(text)))


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:].lower()


@udf("text", "text", "int4", "int4", to="int4")
def ksqldb_instr(text: str, part: str, position: int, occurrence: int) -> int:
    """Returns the position of the nth occurrence of a part, counted from a position, or 0.

    A negative position counts from the end, and the search goes from there to the beginning.
    """
    if position == 0 or occurrence < 1 or not part:
        return 0
    at = position - 1 if position > 0 else len(text) + position
    for _ in range(occurrence):
        if at < 0:
            return 0
        place = text.find(part, at) if position > 0 else text.rfind(part, 0, at + len(part))
        if place < 0:
            return 0
        at = place + 1 if position > 0 else place - 1
    return place + 1


def _start(length: int, position: int) -> int:
    """Returns the index of a position; a negative one counts from the end."""
    return max(length + position, 0) if position < 0 else max(position - 1, 0)


@udf("text", "int4", "int4", to="text")
def ksqldb_substring(text: str, position: int, length: int) -> str:
    start = _start(len(text), position)
    return text[start : start + max(length, 0)]


@udf("bytea", "int4", "int4", to="bytea")
def ksqldb_substring_bytes(data: bytes, position: int, length: int) -> bytes:
    start = _start(len(data), position)
    return data[start : start + max(length, 0)]


# --- masks ---------------------------------------------------------------------------------------


MASKS = 4  # replacements


@udf("text", "text", "int4", "text", to="text")
def ksqldb_mask(text: str, part: str, count: int, masks: str) -> str:
    """Returns the text with its characters replaced.

    `part`: "left" or "right" `count` characters are masked, "not left" or "not right" all others. `masks`: the replacements of
    upper-case letters, lower-case letters, digits and other characters; a zero character instead of one replaces none.
    """
    if count < 0:
        raise InvalidParameterValue("function requires a non-negative number of characters to mask or skip")
    if len(masks) < MASKS:
        raise InvalidParameterValue(f"function requires {MASKS} replacements")
    cut = min(count, len(text)) if part.endswith("left") else max(len(text) - count, 0)
    head, tail = text[:cut], text[cut:]
    if part in ("left", "not right"):
        return _masked(head, masks) + tail
    return head + _masked(tail, masks)


def _masked(text: str, masks: str) -> str:
    out = []
    for char in text:
        mask = masks[0 if char.isupper() else 1 if char.islower() else 2 if char.isdecimal() else 3]
        out.append(char if mask == "\1" else mask)
    return "".join(out)


# --- parts ---------------------------------------------------------------------------------------


@udf("text", "text", to="jsonb")
def ksqldb_split(text: str, delimiter: str) -> str:
    """Returns the parts between delimiters; the characters for an empty delimiter."""
    return dump(text.split(delimiter) if delimiter else list(text))


@udf("jsonb", to="jsonb")
def ksqldb_parts(parts: str) -> str:
    """Returns the parts of a text. An empty text, which has no characters, is its only part."""
    return '[""]' if parts == "[]" else parts


@udf("bytea", "bytea", to="jsonb")
def ksqldb_split_bytes(data: bytes, delimiter: bytes) -> str:
    parts = data.split(delimiter) if delimiter else [data[n : n + 1] for n in range(len(data))]
    return dump([base64.b64encode(part).decode() for part in parts])


@udf("text", "text", "text", to="jsonb")
def ksqldb_split_to_map(text: str, between_entries: str, after_key: str) -> str | None:
    """Returns the entries of a text. Those without a delimiter after the key are ignored."""
    if not between_entries or not after_key:
        return None
    entries = (entry.partition(after_key) for entry in text.split(between_entries) if after_key in entry)
    return dump({key: value for key, _, value in entries})


# --- encodings -----------------------------------------------------------------------------------


@udf("text", "text", to="bytea")
def ksqldb_to_bytes(text: str, encoding: str) -> bytes:
    """Returns the bytes that a text in an encoding stands for. Raises 22023."""
    try:
        match encoding.lower():
            case "hex":
                digits = text[2:-1] if text[:2] in ("X'", "x'") else text[2:] if text.startswith("0x") else text
                return bytes.fromhex("0" * (len(digits) % 2) + digits)
            case "utf8":
                return text.encode()
            case "ascii":
                return text.encode("ascii", "replace")
            case "base64":
                return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidParameterValue(f"invalid text in the encoding {encoding}") from None
    raise InvalidParameterValue(f"unknown encoding type '{encoding}'")


@udf("bytea", "text", to="text")
def ksqldb_from_bytes(data: bytes, encoding: str) -> str:
    """Returns bytes as a text in an encoding. Raises 22023."""
    match encoding.lower():
        case "hex":
            return data.hex()
        case "utf8":
            return data.decode(errors="replace").replace("\0", "�")
        case "ascii":
            return data.decode("ascii", "replace").replace("\0", "�")
        case "base64":
            return base64.b64encode(data).decode()
    raise InvalidParameterValue(f"unknown encoding type '{encoding}'")


def _unpacked(data: bytes, order: str, code: str) -> int | float | None:
    form = struct.Struct(ORDERS.get(order.upper(), ">") + code)
    return form.unpack(data)[0] if len(data) == form.size and order.upper() in ORDERS else None


@udf("bytea", "text", to="int4")
def ksqldb_int_from_bytes(data: bytes, order: str) -> int | float | None:
    return _unpacked(data, order, "i")


@udf("bytea", "text", to="int8")
def ksqldb_bigint_from_bytes(data: bytes, order: str) -> int | float | None:
    return _unpacked(data, order, "q")


@udf("bytea", "text", to="float8")
def ksqldb_double_from_bytes(data: bytes, order: str) -> int | float | None:
    return _unpacked(data, order, "d")


# --- numbers as texts ----------------------------------------------------------------------------


@udf("float8", to="text")
def ksqldb_double_text(value: float) -> str:
    """Returns a DOUBLE as Java writes it: 1.0, 1.0E10."""
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text]
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    if value == 0 or PLAIN_MIN <= abs(value) < PLAIN_MAX:
        return sign + text
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    first = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent or 0) + first}"
