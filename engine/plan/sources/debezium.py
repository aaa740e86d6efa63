"""Debezium's envelope: which row a change leaves, whether it goes, and where in the database's log the change stands.

    op c, u, r ─► the row `after`        op d ─► the key's row goes        anything else (t: truncate) ─► dead letter
    NULL value (tombstone) ─► nothing: the d before it has said so

Delivery is at least once and a copy may come late, so an upsert keeps the newest position of each key and passes over what is not
newer. Positions are texts that compare byte by byte:

    MySQL, MariaDB    number of the transaction in MariaDB's GTID / number of the binary log / place in it / row of the event
    PostgreSQL        log sequence number, which rises for each key (not for the topic: of overlapping transactions the later to
                      commit may have the lower numbers)

MariaDB's transactions go on counting when another server takes over, while files begin again; without a GTID of that form the first
number is 0 and files decide. A row of a snapshot has no position and always applies: a snapshot that is taken again tells
newer rows than whatever came before, on whichever server. A key's `d` and `c` that move it to another key stand at one position,
but are different keys.

Source: what Debezium 3.5 (MariaDB) and 3.7 (PostgreSQL) were seen to send.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.plan.graph import Where
from engine.plan.sources.spell import name, required, text

OPERATIONS = ("c", "u", "r", "d")
POSITIONS = {"gtid": "string", "file": "string", "pos": "bigint", "row": "int", "lsn": "bigint"}  # fields of `source`, and Spark's types


def wanted(envelope: tuple[str, ...], *, keyed: bool) -> Where:
    """Keeps the changes of rows. `envelope`: path of the envelope; `keyed`: that the message's key names the row."""
    op, after = name(*envelope, "op"), name(*envelope, "after")
    known = ", ".join(text(o) for o in OPERATIONS)
    checks = [
        required(f"{op} IN ({known})", "op is none of c, u, r and d; a truncate is not applied"),
        required(f"{op} = 'd' OR {after} IS NOT NULL", "the change has no row after it"),
    ]
    if keyed:
        checks.append(required(f"{name('key')} IS NOT NULL", "null key"))
    return Where(" AND ".join([f"{name(*envelope)} IS NOT NULL", *checks]))


def deleted(envelope: tuple[str, ...]) -> str:
    return f"{name(*envelope, 'op')} = 'd'"


def position(envelope: tuple[str, ...], fields: Collection[str]) -> str:
    """Spark SQL of the position; NULL if `fields` (of `source`) have none that we know."""
    forms = []
    if {"file", "pos", "row"} <= set(fields):
        transaction = f"regexp_extract({name(*envelope, 'source', 'gtid')}, '^[0-9]+-[0-9]+-([0-9]+)$', 1)" if "gtid" in fields else "''"
        number = f"regexp_extract({name(*envelope, 'source', 'file')}, '([0-9]+)$', 1)"
        places = [_padded(name(*envelope, "source", "pos"), 20), _padded(name(*envelope, "source", "row"), 10)]
        forms.append(f"concat_ws('/', lpad(coalesce({transaction}, ''), 20, '0'), lpad({number}, 10, '0'), {', '.join(places)})")
        conditions = [f"{name(*envelope, 'source', 'file')} IS NOT NULL AND {name(*envelope, 'source', 'pos')} IS NOT NULL"]
    else:
        conditions = []
    if "lsn" in fields:
        forms.append(_padded(name(*envelope, "source", "lsn"), 20))
        conditions.append(f"{name(*envelope, 'source', 'lsn')} IS NOT NULL")
    branches = "".join(f" WHEN {c} THEN {f}" for c, f in zip(conditions, forms, strict=True))
    op = name(*envelope, "op")
    return f"CASE WHEN {op} = 'r' THEN CAST(NULL AS STRING){branches} END" if forms else "CAST(NULL AS STRING)"


def _padded(number: str, width: int) -> str:
    return f"lpad(CAST({number} AS STRING), {width}, '0')"
