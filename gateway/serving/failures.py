"""DuckDB's errors as PostgreSQL's.

Functions of ours put the SQLSTATE in the message, `[22012] division by zero`; what DuckDB finds itself is told by its class. Whatever
is left is a bug of ours and stays what it is.
"""

from __future__ import annotations

import re

import duckdb

from lake import errors

MARKED = re.compile(r"\[([0-9A-Z]{5})\] ([^\n]*)")

BY_CLASS: tuple[tuple[type[Exception], type[errors.TailgateError], str | None], ...] = (
    (duckdb.InterruptException, errors.QueryCanceled, "canceling statement due to user request"),
    (duckdb.OutOfMemoryException, errors.OutOfMemory, "out of memory"),
    (duckdb.OutOfRangeException, errors.NumericValueOutOfRange, None),
    (duckdb.ConversionException, errors.InvalidTextRepresentation, None),
)
RANGE = re.compile(r"out of range|overflow|can't be cast because the value", re.IGNORECASE)
DATETIME = re.compile(
    r"(date|time|timestamp|interval) field value out of range|to (DATE|TIME|TIMESTAMP|INTERVAL)|date format", re.IGNORECASE
)
PATTERN = re.compile(r"^(missing|no argument for|invalid (escape|character class|repetition|perl)|bad )", re.IGNORECASE)


def translated(error: Exception) -> Exception:
    """The error as a client is to see it; the same object if it is not one of DuckDB's.

    >>> translated(duckdb.InvalidInputException("Invalid Input Error: [22012] division by zero"))
    DivisionByZero('division by zero')
    """
    if not isinstance(error, duckdb.Error):
        return error
    text = str(error)
    if marked := MARKED.search(text):
        return errors.of(marked[1], marked[2])
    first = text.split("\n", 1)[0].split("Error: ", 1)[-1]
    for theirs, ours, message in BY_CLASS:
        if isinstance(error, theirs):
            if ours is errors.InvalidTextRepresentation and DATETIME.search(first):
                ours = errors.DatetimeFieldOverflow if "range" in first else errors.InvalidDatetimeFormat
            elif ours is errors.InvalidTextRepresentation and RANGE.search(first):
                ours = errors.NumericValueOutOfRange
            return ours(message or lowered(first))
    if isinstance(error, duckdb.InvalidInputException) and PATTERN.search(first):
        return errors.InvalidRegularExpression(f"invalid regular expression: {first}")
    if RANGE.search(first) and isinstance(error, duckdb.InvalidInputException):
        return errors.NumericValueOutOfRange(lowered(first))
    return error


def lowered(message: str) -> str:
    """A message by PostgreSQL's guide: no capital in front, no full stop.

    >>> lowered("Could not convert string 'x' to INT32.")
    "could not convert string 'x' to INT32"
    """
    return message[:1].lower() + message[1:].rstrip(".")
