"""Functions of bytea and bit: digests, encodings, substrings, bits."""

from __future__ import annotations

from tailgate.sql.functions.entry import Function, strict, udf
from tailgate.sql.functions.text import POSITION, substrings

B, T, N, L, BIT, VARBIT = "bytea", "text", "int4", "int8", "bit", "varbit"
LENGTH = ("length({0})", "CAST(octet_length({0}) AS INTEGER)")


def _position(template: str) -> str:
    """Returns the template for the position of bits, which are never found in an empty bit string."""
    return strict(f"CASE WHEN {{0}} = '' THEN 0 ELSE {template} END", 2)


ROWS = (
    Function("length", (B,), N, *LENGTH),
    Function("octet_length", (B,), N, *LENGTH),
    Function("bit_length", (B,), N, f"(8 * {LENGTH[0]})", f"(8 * {LENGTH[1]})"),
    Function("length", (B, T), N, "length(tg_convert_from({0}, {1}))", "CAST(length(tg_convert_from({0}, {1})) AS INTEGER)"),
    udf("convert_from", (B, T), T),
    udf("convert_to", (T, T), B),
    udf("convert", (B, T, T), B),
    udf("encode", (B, T), T),
    udf("decode", (T, T), B),
    *(udf(f"sha{bits}", (B,), B) for bits in (224, 256, 384, 512)),
    udf("md5", (B,), T, "md5_bytea"),
    udf("digest", (B, T), B),
    Function("digest", (T, T), B, "tg_digest(CAST({0} AS BINARY), {1})", "tg_digest(encode({0}), {1})"),
    udf("hmac", (B, B, T), B),
    Function("hmac", (T, T, T), B, "tg_hmac(CAST({0} AS BINARY), CAST({1} AS BINARY), {2})", "tg_hmac(encode({0}), encode({1}), {2})"),
    udf("get_byte", (B, N), N),
    udf("set_byte", (B, N, N), B),
    udf("get_bit", (B, L), N),
    udf("set_bit", (B, L, N), B),
    udf("bit_count", (B,), L),
    *(udf(name, (B, N), B, "bytea_from") for name in ("substring", "substr")),
    *(udf(name, (B, N, N), B, "bytea_part") for name in ("substring", "substr")),
    udf("position", (B, B), N, "bytea_position", order=(1, 0)),
    udf("overlay", (B, B, N), B, "bytea_overlay", order=(0, 1, 2, "CAST(octet_length({1}) AS INT)")),
    udf("overlay", (B, B, N, N), B, "bytea_overlay"),
    udf("btrim", (B, B), B, "bytea_btrim"),
    udf("ltrim", (B, B), B, "bytea_ltrim"),
    udf("rtrim", (B, B), B, "bytea_rtrim"),
)  # fmt: skip

# bit strings are texts of the digits 0 and 1
BIT_ROWS = (
    udf("&", (BIT, BIT), BIT, "bits_and", "operator"),
    udf("|", (BIT, BIT), BIT, "bits_or", "operator"),
    udf("#", (BIT, BIT), BIT, "bits_xor", "operator"),
    Function("~", (BIT,), BIT, *("translate({0}, '01', '10')",) * 2, "prefix"),
    udf("<<", (BIT, N), BIT, "bits_shift_left", "operator"),
    udf(">>", (BIT, N), BIT, "bits_shift_right", "operator"),
    *(Function("||", (t, t), VARBIT, "concat({0}, {1})", "({0} || {1})", "operator") for t in (BIT, VARBIT)),
    *(Function(name, (BIT,), N, "length({0})", "CAST(length({0}) AS INTEGER)") for name in ("length", "bit_length")),
    Function("octet_length", (BIT,), N, "CAST((length({0}) + 7) DIV 8 AS INT)", "CAST((length({0}) + 7) // 8 AS INTEGER)"),
    Function("bit_count", (BIT,), L, "CAST(length(replace({0}, '0', '')) AS BIGINT)", "length(replace({0}, '0', ''))"),
    udf("get_bit", (BIT, N), N, "bits_get_bit"),
    udf("set_bit", (BIT, N, N), BIT, "bits_set_bit"),
    *substrings(BIT, "substring"),
    Function("position", (BIT, BIT), N, _position(POSITION[0]), _position(POSITION[1])),
    udf("overlay", (BIT, BIT, N), BIT, order=(0, 1, 2, "CAST(length({1}) AS INT)")),
    udf("overlay", (BIT, BIT, N, N), BIT),
)  # fmt: skip
