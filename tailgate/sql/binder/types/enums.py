"""Casts between an enum type and text, and enum_range. They depend on the labels of the type, so they are not in the catalogue."""

from __future__ import annotations

from functools import lru_cache

from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import TEXT, EnumType, Type
from tailgate.sql.functions.entry import Function

INVALID = "22P02"


def conversion(source: Type, target: Type) -> Function | None:
    """Returns the cast from an enum type to text, or from text to an enum type. Returns None for other types."""
    if source.enum is not None and target == TEXT:
        return _to_text(source.enum)
    return _from_text(target.enum) if target.enum is not None and source == TEXT else None


@lru_cache(1000)
def _to_text(enum: EnumType) -> Function:
    spark, duckdb = (
        " ".join(f"WHEN {number} THEN {quote(text)}" for number, text in enum.labels) for quote in (spark_literal, duckdb_literal)
    )
    templates = _case(spark, "CAST(NULL AS STRING)"), _case(duckdb, "CAST(NULL AS VARCHAR)")
    return Function("cast", ("enum",), "text", *templates, "cast", context="assignment")


@lru_cache(1000)
def _from_text(enum: EnumType) -> Function:
    message = f'invalid input value for enum {enum.sql}: "'
    spark, duckdb = (
        " ".join(f"WHEN {quote(text)} THEN {number}" for number, text in enum.labels) for quote in (spark_literal, duckdb_literal)
    )
    spark_error = f"""raise_error(concat('\\u0001{INVALID}', {spark_literal(message)}, {{0}}, '"'))"""
    duckdb_error = f"""error({duckdb_literal(f"[{INVALID}] {message}")} || {{0}} || '"')"""
    return Function(
        "cast", ("text",), "enum",
        f"CAST(CASE WHEN {{0}} IS NULL THEN NULL ELSE {_case(spark, spark_error)} END AS BIGINT)",
        f"CAST(CASE WHEN {{0}} IS NULL THEN NULL ELSE {_case(duckdb, duckdb_error)} END AS BIGINT)",
        "cast",
    )  # fmt: skip


@lru_cache(1000)
def range_of(numbers: tuple[int, ...]) -> Function:
    """Returns enum_range with two bounds, of an enum type with these numbers. A bound that is NULL is the first or last label."""
    test = "({0} IS NULL OR tg_x >= {0}) AND ({1} IS NULL OR tg_x <= {1})"
    items = ", ".join(map(str, numbers))
    return Function(
        "enum_range", ("enum", "enum"), "enum[]",
        f"filter(CAST(array({items}) AS {{type}}), tg_x -> {test})",
        f"list_filter(CAST([{items}] AS {{type}}), lambda tg_x: {test})",
        strict=False,
    )  # fmt: skip


def _case(branches: str, otherwise: str) -> str:
    return f"(CASE {{0}} {branches} ELSE {otherwise} END)" if branches else otherwise


def spark_literal(text: str) -> str:
    """Returns a text as a literal of Spark, in which no brace can be taken for a place in a template."""
    return "'" + "".join(c if c.isalnum() or c in " _-" else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in text) + "'"


def _utf16(character: str) -> list[int]:
    data = character.encode("utf-16-be")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def duckdb_literal(text: str) -> str:
    """Returns a text as a literal of DuckDB, in which no brace can be taken for a place in a template."""
    plain = quoted_text(text)
    return plain.replace("{", "' || chr(123) || '") if "{" in text else plain
