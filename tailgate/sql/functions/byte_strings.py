"""Functions of bytea: digests, encodings, substrings."""

from __future__ import annotations

from tailgate.sql.functions.entry import Function, udf

B, T, N, L = "bytea", "text", "int4", "int8"
LENGTH = ("length({0})", "CAST(octet_length({0}) AS INTEGER)")

ROWS = (
    Function("length", (B,), N, *LENGTH),
    Function("octet_length", (B,), N, *LENGTH),
    Function("bit_length", (B,), N, f"(8 * {LENGTH[0]})", f"(8 * {LENGTH[1]})"),
    Function("length", (B, T), N, "length(tg_convert_from({0}, {1}))", "CAST(length(tg_convert_from({0}, {1})) AS INTEGER)"),
    udf("convert_from", (B, T), T),
    udf("convert_to", (T, T), B),
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
