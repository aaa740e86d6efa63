"""Functions of text arrays. Functions of arrays of any type are SQL, in sql.functions.arrays."""

from __future__ import annotations

from tailgate.sql.compute.registry import udf


@udf("text[]", "text", to="text")
def array_to_string(items: list[str | None], separator: str) -> str:
    return separator.join(i for i in items if i is not None)


@udf("text[]", "text", "text", to="text")
def array_to_string_null(items: list[str | None], separator: str, null_text: str) -> str:
    return separator.join(null_text if i is None else i for i in items)
