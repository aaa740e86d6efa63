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
from engine.plan.sources.reads import Document, Reads
from engine.plan.sources.spell import required, text

OPERATIONS = ("c", "u", "r", "d")
POSITIONS = {"gtid": "string", "file": "string", "pos": "bigint", "row": "int", "lsn": "bigint"}  # fields of `source`, and Spark's types


def wanted(envelope: Reads, *, key: str | None) -> Where:
    """Keeps the changes of rows. `key`: the message's key, if that names the row."""
    op = envelope.field("op")
    checks = [
        required(f"{op} IN ({', '.join(map(text, OPERATIONS))})", "op is none of c, u, r and d; a truncate is not applied"),
        required(f"{op} = 'd' OR {envelope.exists('after')}", "the change has no row after it"),
    ]
    if key is not None:
        checks.append(required(f"{key} IS NOT NULL", "null key"))
    return Where(" AND ".join([envelope.exists(), *checks]))


def deleted(envelope: Reads) -> str:
    return f"{envelope.field('op')} = 'd'"


def position(envelope: Reads, fields: Collection[str]) -> str:
    """Spark SQL of the position; NULL if `fields` (of `source`) have none that we know."""
    branches = []
    if {"file", "pos", "row"} <= set(fields):
        gtid = f"regexp_extract({envelope.field('source', 'gtid')}, '^[0-9]+-[0-9]+-([0-9]+)$', 1)" if "gtid" in fields else "''"
        number = f"regexp_extract({envelope.field('source', 'file')}, '([0-9]+)$', 1)"
        places = [_padded(f"coalesce({gtid}, '')", 20), _padded(number, 10), _number(envelope, "pos", 20), _number(envelope, "row", 10)]
        there = f"{envelope.exists('source', 'file')} AND {envelope.exists('source', 'pos')}"
        branches.append(f"WHEN {there} THEN concat_ws('/', {', '.join(places)})")
    if "lsn" in fields:
        branches.append(f"WHEN {envelope.exists('source', 'lsn')} THEN {_number(envelope, 'lsn', 20)}")
    if not branches:
        return "CAST(NULL AS STRING)"
    return f"CASE WHEN {envelope.field('op')} = 'r' THEN CAST(NULL AS STRING) {' '.join(branches)} END"


def _number(envelope: Reads, field: str, width: int) -> str:
    number = envelope.field("source", field)
    return _padded(number if isinstance(envelope, Document) else f"CAST({number} AS STRING)", width)


def _padded(text: str, width: int) -> str:
    return f"lpad({text}, {width}, '0')"
