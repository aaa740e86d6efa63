"""The positions of a scrollable cursor: the directions of FETCH and MOVE.

A cursor's position is the number of a row, counted from 1; 0 is before the first row, and the number of rows plus 1 after the last.

Source: PostgreSQL, `DoPortalRunFetch` in src/backend/tcop/pquery.c.
"""

from __future__ import annotations


def moved(at: int, size: int, way: str, count: int | None) -> tuple[int, int, int]:
    """Returns the index of the first row to read, the number of rows (negative: backwards), and the cursor's new position.

    `at`: the position. `size`: the number of rows. `way`: forward, backward, absolute or relative. `count`: None is ALL.

    >>> moved(0, 10, "forward", 3), moved(3, 10, "forward", None), moved(9, 10, "forward", 5), moved(3, 10, "forward", 0)
    ((0, 3, 3), (3, 7, 11), (9, 1, 11), (2, 1, 3))
    >>> moved(3, 10, "backward", 1), moved(3, 10, "backward", 5), moved(11, 10, "backward", None), moved(3, 10, "backward", -1)
    ((1, -1, 2), (1, -2, 0), (9, -10, 0), (3, 1, 4))
    >>> moved(3, 10, "absolute", -1), moved(3, 10, "absolute", 11), moved(3, 10, "relative", -2), moved(0, 10, "relative", 0)
    ((9, 1, 10), (10, 0, 11), (0, 1, 1), (0, 0, 0))
    """
    if way in ("absolute", "relative") or count == 0:
        count = count or 0
        to = (count if count >= 0 else size + 1 + count) if way == "absolute" else at + count
        to = min(max(to, 0), size + 1)
        return max(to - 1, 0), int(1 <= to <= size), to
    if (way == "forward") == (count is None or count > 0):
        left = max(size - at, 0)
        rows = left if count is None else min(abs(count), left)
        return min(at, size), rows, at + rows if count is not None and rows == abs(count) else size + 1
    left = max(at - 1, 0)
    rows = left if count is None else min(abs(count), left)
    return at - 2, -rows, at - rows if count is not None and rows == abs(count) else 0
