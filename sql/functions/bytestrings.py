"""Strings of bytes: digests, encodings, parts."""

from __future__ import annotations

from sql.functions.entry import Function, own

B, T, N, L = "bytea", "text", "int4", "int8"
LENGTH = ("length({0})", "CAST(octet_length({0}) AS INTEGER)")

ROWS = (
    Function("length", (B,), N, *LENGTH),
    Function("octet_length", (B,), N, *LENGTH),
    Function("bit_length", (B,), N, f"(8 * {LENGTH[0]})", f"(8 * {LENGTH[1]})"),
    Function("length", (B, T), N, "length(tg_convert_from({0}, {1}))", "CAST(length(tg_convert_from({0}, {1})) AS INTEGER)"),
    own("convert_from", (B, T), T),
    own("convert_to", (T, T), B),
    own("encode", (B, T), T),
    own("decode", (T, T), B),
    *(own(f"sha{bits}", (B,), B) for bits in (224, 256, 384, 512)),
    own("md5", (B,), T, "md5_bytea"),
    own("get_byte", (B, N), N),
    own("set_byte", (B, N, N), B),
    own("get_bit", (B, L), N),
    own("set_bit", (B, L, N), B),
    own("bit_count", (B,), L),
    *(own(name, (B, N), B, "bytea_from") for name in ("substring", "substr")),
    *(own(name, (B, N, N), B, "bytea_part") for name in ("substring", "substr")),
    own("position", (B, B), N, "bytea_position", order=(1, 0)),
    own("overlay", (B, B, N), B, "bytea_overlay", order=(0, 1, 2, "CAST(octet_length({1}) AS INT)")),
    own("overlay", (B, B, N, N), B, "bytea_overlay"),
    own("btrim", (B, B), B, "bytea_btrim"),
    own("ltrim", (B, B), B, "bytea_ltrim"),
    own("rtrim", (B, B), B, "bytea_rtrim"),
)  # fmt: skip
