"""Functions of texts and bytes.

Source: ksqlDB 0.29, documentation, "Scalar functions", sections "Strings" and "Bytes".
"""

from __future__ import annotations

from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import TEXTS, Function
from tailgate.sql.ksqldb.functions.json_texts import RECORDS

LENGTH_MAX = 2**31 - 1
MASKS = ("'X'", "'x'", "'n'", "'-'")  # the replacements of upper-case letters, lower-case letters, digits and others
KEPT = "chr(1)"  # instead of a replacement: the characters are kept


def _text(name: str, arguments: tuple[TypeName, ...], template: str, does: str, *, may_fail: bool = False) -> Function:
    return Function(name, arguments, t.VARCHAR, template, does, may_fail=may_fail)


def _masks(name: str, part: str, does: str) -> list[Function]:
    """Returns a function that replaces characters: without and with the four replacements."""
    has_count = name != "mask"
    arguments = (t.VARCHAR, t.INT) if has_count else (t.VARCHAR,)
    count = "{1}" if has_count else "0"
    first = len(arguments)
    rows = []
    for count_of_masks in range(len(MASKS) + 1):
        texts = [f"coalesce(substr({{{first + n}}}, 1, 1), {KEPT})" if n < count_of_masks else mask for n, mask in enumerate(MASKS)]
        template = f"ksqldb_mask({{0}}, '{part}', {count}, {' || '.join(texts)})"
        rows.append(_text(name, arguments + (t.VARCHAR,) * count_of_masks, template, does, may_fail=True))
    return rows


def _pads(name: str, does: str) -> list[Function]:
    text = f"CASE WHEN {{1}} >= 0 AND {{2}} <> '' THEN {name}({{0}}, {{1}}, {{2}}) END"
    hexadecimal = f"{name}(encode({{0}}, 'hex'), 2 * {{1}}, encode({{2}}, 'hex'))"
    data = f"CASE WHEN {{1}} >= 0 AND octet_length({{2}}) > 0 THEN decode({hexadecimal}, 'hex') END"
    return [
        _text(name, (t.VARCHAR, t.INT, t.VARCHAR), text, does, may_fail=True),
        Function(name, (t.BYTES, t.INT, t.BYTES), t.BYTES, data, does, may_fail=True),
    ]


def _from_bytes(name: str, result: TypeName, does: str) -> list[Function]:
    return [
        Function(name, (t.BYTES,), result, f"ksqldb_{name}({{0}}, 'BIG_ENDIAN')", does),
        Function(name, (t.BYTES, t.VARCHAR), result, f"ksqldb_{name}({{0}}, {{1}})", does),
    ]


# an empty part occurs around each character; of a literal it is known that it is not empty, so that calls in calls stay short
_AROUND = r"ksqldb_pattern_replace({0}, '', replace(replace({2}, '\', '\\'), '$', '\$'))"
_REPLACED = "replace({0}, {1}, {2})"
_REPLACED_ANY = f"CASE WHEN {{1}} = '' THEN {_AROUND} ELSE {_REPLACED} END"
BLANKS = quoted_text("".join(map(chr, range(1, ord(" ") + 1))))
_CHR = "The character with a number, or with an escape such as \\u004b."
_CONCAT, _CONCAT_WS = "The arguments in a row. NULL is left out.", "The arguments with a separator between them. NULL is left out."
_INSTR = "The position of a part in a text, or 0. Optional: the position from which it is searched, and which occurrence."
_SUBSTRING = "The part from a position on, optionally with a length. A negative position counts from the end."
_EXTRACT = "The first match of a regular expression, or of one of its groups."
_EXTRACT_ALL = "All matches of a regular expression, or of one of its groups."

STRINGS = (
    _text("chr", (t.INT,), "chr({0})", _CHR, may_fail=True),
    _text("chr", (t.VARCHAR,), "CASE WHEN starts_with({0}, '\\u') THEN unistr({0}) END", _CHR, may_fail=True),
    Function("concat", (t.VARCHAR,), t.VARCHAR, "concat({*})", _CONCAT, variadic=True),
    Function("concat", (t.BYTES,), t.BYTES, "decode(concat({hex*}), 'hex')", _CONCAT, variadic=True),
    Function("concat_ws", (t.VARCHAR, t.VARCHAR), t.VARCHAR, "concat_ws({*})", _CONCAT_WS, variadic=True),
    Function("concat_ws", (t.BYTES, t.BYTES), t.BYTES, "decode(concat_ws({hex*}), 'hex')", _CONCAT_WS, variadic=True),
    _text("encode", (t.VARCHAR,) * 3, "ksqldb_from_bytes(ksqldb_to_bytes({0}, {1}), {2})",
          "A text in another encoding: hex, utf8, ascii or base64.", may_fail=True),
    _text("initcap", (t.VARCHAR,), "ksqldb_capitalized({0})", "The text with each word capitalized."),
    Function("instr", (t.VARCHAR, t.VARCHAR), t.INT, "ksqldb_instr({0}, {1}, 1, 1)", _INSTR),
    Function("instr", (t.VARCHAR, t.VARCHAR, t.INT), t.INT, "ksqldb_instr({0}, {1}, {2}, 1)", _INSTR),
    Function("instr", (t.VARCHAR, t.VARCHAR, t.INT, t.INT), t.INT, "ksqldb_instr({0}, {1}, {2}, {3})", _INSTR),
    _text("lcase", (t.VARCHAR,), "lower({0})", "The text in lower case."),
    Function("len", (t.VARCHAR,), t.INT, "length({0})", "The number of characters, or of bytes."),
    Function("len", (t.BYTES,), t.INT, "octet_length({0})", "The number of characters, or of bytes."),
    *_pads("lpad", "The value with a padding before it, or cut, to a length."),
    *_masks("mask", "not left", "The text with its characters replaced by X, x, n and -, or by the arguments."),
    *_masks("mask_keep_left", "not left", "The text with all but the first n characters masked."),
    *_masks("mask_keep_right", "not right", "The text with all but the last n characters masked."),
    *_masks("mask_left", "left", "The text with the first n characters masked."),
    *_masks("mask_right", "right", "The text with the last n characters masked."),
    _text("md5", (t.VARCHAR,), "md5({0})", "The MD5 hash of the text, in hexadecimal digits."),
    _text("regexp_extract", (t.VARCHAR, t.VARCHAR), "ksqldb_pattern_extract({0}, {1}, 0)", _EXTRACT, may_fail=True),
    _text("regexp_extract", (t.VARCHAR, t.VARCHAR, t.INT), "ksqldb_pattern_extract({0}, {1}, {2})", _EXTRACT, may_fail=True),
    Function("regexp_extract_all", (t.VARCHAR, t.VARCHAR), TEXTS, "ksqldb_pattern_extract_all({0}, {1}, 0)", _EXTRACT_ALL,
             may_fail=True),
    Function("regexp_extract_all", (t.VARCHAR, t.VARCHAR, t.INT), TEXTS, "ksqldb_pattern_extract_all({0}, {1}, {2})", _EXTRACT_ALL,
             may_fail=True),
    _text("regexp_replace", (t.VARCHAR,) * 3, "ksqldb_pattern_replace({0}, {1}, {2})", "The text with all matches replaced.",
          may_fail=True),
    Function("regexp_split_to_array", (t.VARCHAR, t.VARCHAR), TEXTS, "ksqldb_pattern_split({0}, {1})",
             "The parts of a text between matches.", may_fail=True),
    Function("replace", (t.VARCHAR,) * 3, t.VARCHAR, _REPLACED_ANY, "The text with all occurrences of a part replaced.",
             of_literal=_REPLACED),
    *_pads("rpad", "The value with a padding after it, or cut, to a length."),
    Function("split", (t.VARCHAR, t.VARCHAR), TEXTS, "ksqldb_parts(ksqldb_split({0}, {1}))", "The parts of a text between delimiters."),
    Function("split", (t.BYTES, t.BYTES), TypeName("array", arguments=(t.BYTES,)), "ksqldb_split_bytes({0}, {1})",
             "The parts of a text between delimiters."),
    Function("split_to_map", (t.VARCHAR,) * 3, RECORDS, "ksqldb_split_to_map({0}, {1}, {2})",
             "The keys and values in a text, by the delimiters of entries and after keys."),
    *(Function("substring", (kind, t.INT), kind, f"{call}({{0}}, {{1}}, {LENGTH_MAX})", _SUBSTRING)
      for kind, call in ((t.VARCHAR, "ksqldb_substring"), (t.BYTES, "ksqldb_substring_bytes"))),
    *(Function("substring", (kind, t.INT, t.INT), kind, f"{call}({{0}}, {{1}}, {{2}})", _SUBSTRING)
      for kind, call in ((t.VARCHAR, "ksqldb_substring"), (t.BYTES, "ksqldb_substring_bytes"))),
    _text("trim", (t.VARCHAR,), f"btrim({{0}}, {BLANKS})", "The text without spaces and control characters at its beginning and end."),
    _text("ucase", (t.VARCHAR,), "upper({0})", "The text in upper case."),
    Function("uuid", (), t.VARCHAR, "", "A random UUID, or the UUID of 16 bytes.", volatile=True),
    _text("uuid", (t.BYTES,), "CASE WHEN octet_length({0}) = 16 THEN CAST(CAST(encode({0}, 'hex') AS uuid) AS text) END",
          "A random UUID, or the UUID of 16 bytes."),
)  # fmt: skip
_ENCODING = "in an encoding: hex, utf8, ascii or base64."
BYTES = (
    _text("from_bytes", (t.BYTES, t.VARCHAR), "ksqldb_from_bytes({0}, {1})", f"Bytes as a text {_ENCODING}", may_fail=True),
    Function("to_bytes", (t.VARCHAR, t.VARCHAR), t.BYTES, "ksqldb_to_bytes({0}, {1})", f"The bytes of a text {_ENCODING}", may_fail=True),
    *_from_bytes("int_from_bytes", t.INT, "The integer of 4 bytes, BIG_ENDIAN or LITTLE_ENDIAN."),
    *_from_bytes("bigint_from_bytes", t.BIGINT, "The integer of 8 bytes, BIG_ENDIAN or LITTLE_ENDIAN."),
    *_from_bytes("double_from_bytes", t.DOUBLE, "The number of 8 bytes, BIG_ENDIAN or LITTLE_ENDIAN."),
)
ROWS = (*STRINGS, *BYTES)
