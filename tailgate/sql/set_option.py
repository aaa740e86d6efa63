"""Edits an option in the text of a CREATE statement, for ALTER … SET and RESET."""

from __future__ import annotations

from tailgate.sql.definitions import apply_edits
from tailgate.sql.lexer.tokens import Token, tokens


def set_option(text: str, clause: tuple[int, int], name: str, value: str | None) -> str:
    """Returns the text with an option set to a string, or without the option if `value` is None.

    `clause`: begin and end of the WITH clause for a new option. They are equal without one.

    >>> set_option("CREATE TABLE t (k int)", (22, 22), "retain history for", "1 h")
    "CREATE TABLE t (k int) WITH (RETAIN HISTORY FOR '1 h')"
    >>> set_option("CREATE TABLE t (k int) WITH (RETAIN HISTORY FOR '1 h')", (22, 54), "retain history for", None)
    'CREATE TABLE t (k int)'
    """
    row = tokens(text)
    words = name.split()
    new = "" if value is None else f"{name.upper()} '{value.replace(chr(39), chr(39) * 2)}'"
    begin, end = clause
    for first in range(1, len(row) - len(words)):
        option = row[first : first + len(words)]
        if row[first - 1].value in ("(", ",") and [t.value for t in option if t.kind == "word"] == words:
            return apply_edits(text, [_replacement(row, first, first + len(words), new)])
    if not new:
        return text
    if begin == end:
        return apply_edits(text, [(begin, end, f" WITH ({new})")])
    opening = next(t for t in row if t.value == "(" and t.position > begin)
    return apply_edits(text, [(opening.end, opening.end, f"{new}, ")])


def _replacement(row: tuple[Token, ...], first: int, value: int, new: str) -> tuple[int, int, str]:
    """Returns the edit of an option whose name begins at token `first` and whose value, or `=`, is at token `value`.

    Without a new text it removes the option, with its comma, or with WITH ( ) if it is the only one.
    """
    last = value + 1 if row[value].value == "=" else value
    if new:
        return row[first].position, row[last].end, new
    if row[last + 1].value == ",":
        return row[first].position, row[last + 2].position, ""
    if row[first - 1].value == ",":
        return row[first - 1].position, row[last].end, ""
    return row[first - 3].end, row[last + 1].end, ""
