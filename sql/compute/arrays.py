"""Arrays of text; what works for elements of any type is written in SQL, in sql.functions.arrays."""

from __future__ import annotations

from sql.compute.registry import own


@own("text[]", "text", to="text", name="array_to_string")
def joined(items: list[str | None], separator: str) -> str:
    return separator.join(i for i in items if i is not None)


@own("text[]", "text", "text", to="text", name="array_to_string_null")
def joined_with(items: list[str | None], separator: str, null: str) -> str:
    return separator.join(null if i is None else i for i in items)
