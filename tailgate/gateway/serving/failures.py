"""Translates DuckDB's errors to PostgreSQL's.

Tailgate's functions put the SQLSTATE into the message: `[22012] division by zero`. DuckDB's own
errors are recognized by class and text. Any other error is a defect and stays unchanged.
"""

from __future__ import annotations

import re

import duckdb

from tailgate.lake import errors
from tailgate.sql.render.duckdb_functions import error_of

MARKED = re.compile(r"\[([0-9A-Z]{5})\] ([^\n]*)")

RANGE = re.compile(r"out of range|overflow|can't be cast because the value", re.IGNORECASE)
OF_VALUES = (duckdb.InterruptException, duckdb.OutOfMemoryException, duckdb.OutOfRangeException, duckdb.ConversionException)
ESCAPE = "must not end with escape character"  # of a constant pattern, when the query is bound
PATTERN = re.compile(r"^(missing|no argument for|invalid (escape|character class|repetition|perl)|bad )", re.IGNORECASE)


def translated(error: Exception) -> Exception:
    """Returns the error for the client; the same object if it does not come from DuckDB.

    >>> translated(duckdb.InvalidInputException("Invalid Input Error: [22012] division by zero"))
    DivisionByZero('division by zero')
    """
    if not isinstance(error, duckdb.Error):
        return error
    text = str(error)
    if marked := MARKED.search(text):
        return errors.of(marked[1], marked[2])
    first = text.split("\n", 1)[0].split("Error: ", 1)[-1]
    if isinstance(error, duckdb.InvalidInputException) and PATTERN.search(first):
        return errors.InvalidRegularExpression(f"invalid regular expression: {first}")
    if "infinite bounds" in first:
        return errors.FeatureNotSupported("generate_series with infinite bounds is not supported")
    if isinstance(error, OF_VALUES) or ESCAPE in first or (isinstance(error, duckdb.InvalidInputException) and RANGE.search(first)):
        return error_of(error)
    return error
