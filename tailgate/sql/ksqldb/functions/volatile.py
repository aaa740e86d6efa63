"""Functions whose value differs each time: a query computes it once per row, or once per change of a group.

UUID and RANDOM are the same when a tick runs again, and when a row leaves a table: they are a hash of the row's place and of a text
that is chosen once for each call, when the statement is executed. The place of a row is that of its record in a topic, otherwise
the values of its columns; that of a group is its key, the number of its rows and its ROWTIME. UNIX_TIMESTAMP and UNIX_DATE are the time
when the record, or the last one of the group, is processed; in a pull query of stored rows it is the time of the answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.typed.values import Typed, milliseconds

OF_PLACE = ("uuid", "random")  # need a place that no other row has
VOLATILE = (*OF_PLACE, "unix_timestamp", "unix_date")  # without an argument
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
            hint="Use UUID and RANDOM outside of lambdas; UNIX_TIMESTAMP and UNIX_DATE over streams without sessions, or in pull queries.",
            position=position,
        )
    if name not in OF_PLACE:
        clock = f"ksqldb_clock(CAST({record[0]} AS integer), CAST({record[1]} AS bigint))"
        return _time(name, clock)
    places = " || '/' || ".join(f"CAST({text} AS text)" for text in record)
    digest = f"md5('{secrets.token_hex(8)}/' || {places})"
    if name == "uuid":
        digits = f"overlay(overlay({digest} placing '{VERSION}' from 13 for 1) placing '{VARIANT}' from 17 for 1)"
        return Typed(f"CAST(CAST({digits} AS uuid) AS text)", types.VARCHAR)
    terms = (f"get_byte(decode({digest}, 'hex'), {n}) / {256 ** (n + 1)}::double precision" for n in range(RANDOM_BYTES))
    return Typed(f"({' + '.join(terms)})", types.DOUBLE)


def now(name: str) -> Typed:
    """Returns the value of UNIX_TIMESTAMP or UNIX_DATE when a statement is executed."""
    return _time(name, milliseconds("clock_timestamp()"))


def _time(name: str, clock: str) -> Typed:
    return Typed(f"CAST({clock} / {DAY_MS} AS integer)", types.INT) if name == "unix_date" else Typed(clock, types.BIGINT)
