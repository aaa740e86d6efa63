"""UUID and RANDOM of a record: values that a query computes once per record, and that are the same when a tick runs again.

A value is a hash of the record's place in its topic and of a text that is chosen once for each call, when the statement is executed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.typed.values import Typed

PER_RECORD = ("uuid", "random")
RANDOM_BYTES = 6  # of a hash: 48 bits, which a DOUBLE holds exactly
VERSION, VARIANT = "4", "a"  # of RFC 4122: a random UUID


def volatile_call(name: str, record: Sequence[str], position: int) -> Typed:
    """Returns the value of a volatile function. `record`: the partition and offset of a record, or empty where there is none.

    Raises 0A000 without a record, and for a function of the current time, which its place does not determine.
    """
    if name not in PER_RECORD or not record:
        raise FeatureNotSupported(
            f"{name.upper()}() is not supported here, because its value differs each time",
            hint="Use ROWTIME for times, and UUID and RANDOM in SELECT and WHERE over a declared stream.",
            position=position,
        )
    places = " || '/' || ".join(f"CAST({text} AS text)" for text in record)
    digest = f"md5('{secrets.token_hex(8)}/' || {places})"
    if name == "uuid":
        digits = f"overlay(overlay({digest} placing '{VERSION}' from 13 for 1) placing '{VARIANT}' from 17 for 1)"
        return Typed(f"CAST(CAST({digits} AS uuid) AS text)", types.VARCHAR)
    terms = (f"get_byte(decode({digest}, 'hex'), {n}) / {256 ** (n + 1)}::double precision" for n in range(RANDOM_BYTES))
    return Typed(f"({' + '.join(terms)})", types.DOUBLE)
