"""The limits of the console."""

from __future__ import annotations

STATEMENTS_MAX = 100  # statements and streams that run at a time, of all users
ROWS_MAX = 1_000  # rows of a result; further ones are not read
BYTES_MAX = 8 << 20  # of a result
REQUEST_BYTES_MAX = 256 << 10  # of a request; a statement of a person is far smaller
