"""Where a cursor goes: the directions of FETCH and MOVE, as positions.

A cursor stands on a row, 1 to the number of rows, or before the first, 0, or behind the last. Source: PostgreSQL's portal of rows that
were kept (`DoPortalRunFetch`).
"""

from __future__ import annotations


def moved(at: int, size: int, way: str, count: int | None) -> tuple[int, int, int]:
    """The index of the first row that is read, how many (negative: each before the last one), and where the cursor stands then.

    `way`: forward, backward, absolute or relative; `count`: None is ALL.

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
