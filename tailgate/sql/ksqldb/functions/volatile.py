"""Functions whose value differs each time: a query computes it once per row, or once per change of a group.

UUID and RANDOM are the same when a tick runs again, and when a row leaves a table: they are a hash of the row's place and of a text
that is chosen once for each call, when the statement is executed. The place of a row is that of its record in a topic, otherwise
the values of its columns; that of a group is its key, the number of its rows and its ROWTIME. UNIX_TIMESTAMP and UNIX_DATE are the time
when the record, or the last one of the group, is processed; in a pull query of stored rows it is the time of the answer. Rows of
sessions have it in a column, because they move to another group when sessions merge, and so have rows of tables, because it
is the same when they leave.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.typed.values import Typed, milliseconds

OF_PLACE = ("uuid", "random")  # need a place that no other row has
OF_TIME = ("unix_timestamp", "unix_date")
VOLATILE = (*OF_PLACE, *OF_TIME)  # without an argument
CLOCK = quoted("unix_timestamp()")  # the column with the time when a record is processed
DAY_MS = 86_400_000
RANDOM_BYTES = 6  # of a hash: 48 bits, which a DOUBLE holds exactly
VERSION, VARIANT = "4", "a"  # of RFC 4122: a random UUID


def volatile_call(name: str, record: Sequence[str], position: int) -> Typed:
    """Returns the value of a volatile function. `record`: the place of a row, or the partition and offset of a row of a stream.

    Raises 0A000 if it is empty.
    """
    if not record:
        raise FeatureNotSupported(
            f"{name.upper()}() is not supported here, because its value differs each time",
            hint="Use UUID and RANDOM outside of lambdas, and UNIX_TIMESTAMP and UNIX_DATE outside of lambdas next to aggregates.",
            position=position,
        )
    if name in OF_TIME:
        return time_of(name, clock(record))
    places = " || '/' || ".join(f"CAST({text} AS text)" for text in record)
    digest = f"md5('{secrets.token_hex(8)}/' || {places})"
    if name == "uuid":
        digits = f"overlay(overlay({digest} placing '{VERSION}' from 13 for 1) placing '{VARIANT}' from 17 for 1)"
        return Typed(f"CAST(CAST({digits} AS uuid) AS text)", types.VARCHAR)
    terms = (f"get_byte(decode({digest}, 'hex'), {n}) / {256 ** (n + 1)}::double precision" for n in range(RANDOM_BYTES))
    return Typed(f"({' + '.join(terms)})", types.DOUBLE)


def now(name: str) -> Typed:
    """Returns the value of UNIX_TIMESTAMP or UNIX_DATE when a statement is executed."""
    return time_of(name, milliseconds("clock_timestamp()"))


def has_clock(part: Any) -> bool:
    """Returns whether an expression, or one of a tuple, contains UNIX_TIMESTAMP or UNIX_DATE of the current time."""
    return any(isinstance(call, e.FunctionCall) and call.name in OF_TIME and not call.arguments for call in e.walk(part))


def clock(record: Sequence[str]) -> str:
    """Returns the text of the time in milliseconds when a record is processed. `record`: its partition and offset."""
    return f"ksqldb_clock(CAST({record[0]} AS integer), CAST({record[1]} AS bigint))"


def time_of(name: str, clock: str) -> Typed:
    """Returns the value of UNIX_TIMESTAMP or UNIX_DATE at a time in milliseconds."""
    return Typed(f"CAST({clock} / {DAY_MS} AS integer)", types.INT) if name == "unix_date" else Typed(clock, types.BIGINT)
