"""Rows as text: tables with columns in width of their longest value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def table(names: Sequence[str], rows: Sequence[Sequence[Any]], *, padded: bool = False) -> str:
    """Returns a table with a line under its names and one at its end. `padded`: lines end with the blanks of their last column.

    >>> print(table(["ID", "N"], [["a", 1]]))
     ID | N
    --------
     a  | 1
    --------
    """
    cells = [[shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    rule = "-" * (sum(widths) + 3 * len(widths) - 1)
    lines = [" " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " " for row in (names, *cells)]
    lines = lines if padded else [line.rstrip() for line in lines]
    return "\n".join([lines[0], rule, *lines[1:], rule])


def shown(value: Any) -> str:
    """Returns a value as text: JSON, texts without quotes, and null."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
