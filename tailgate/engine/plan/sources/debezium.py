"""Debezium's envelope: the change of a row, and its position in the database's log.

    op c, u, r                the row `after` is inserted or updated
    op d                      the row is deleted
    op t                      all rows of the table are deleted
    NULL value (tombstone)    ignored, because it follows a d
    other values              dead letter

Delivery is at least once, and repeated changes may arrive late. The operators that store the rows
handle this (tailgate/engine/java, CdcUpsert and CdcBag). This module computes the columns CHANGE_EVENT
for them:

    origin     connector.database.schema.table
    lane       empty, or the part of a GTID that identifies a sequence of transactions: MariaDB's
               domain or MySQL's server
    position   MySQL, MariaDB   number of the GTID / number of the binary log / position in it /
                                row of the event
               PostgreSQL       log sequence number; it rises for each key, but not for the topic:
                                if transactions overlap, the one that commits later may have lower
                                numbers. Without a key, the number of the last commit precedes it
    place      the position without the GTID; in a snapshot, the position from which the log is read

If a change moves a row to another key, its `d` and `c` have the same position, but different keys.

Source: observed messages of Debezium 3.5 (MariaDB) and 3.7 (PostgreSQL).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tailgate.engine.plan.circuit.steps import Filter
from tailgate.engine.plan.sources.accessors import Struct
from tailgate.engine.plan.sources.spark_sql import required, text

OPERATIONS = ("c", "u", "r", "d", "t")

# the fields of `source` that are read, if they exist
SOURCE = ("connector", "name", "db", "schema", "table", "snapshot", "ts_ms", "gtid", "file", "pos", "row", "lsn", "sequence")


@dataclass(frozen=True, slots=True)
class Envelope(Struct):
    """An envelope; `op` is Spark SQL of its operation, which is derived for envelopes of sinks."""

    op: str

    def field(self, *path: str) -> str:
        """Returns Spark SQL of a field of the envelope."""
        return self.op if path == ("op",) else Struct.field(self, *path)


def envelope(at: str, *, has_op: bool, always_has_op: bool, has_before: bool) -> Envelope:
    """Returns the envelope at `at` (Spark SQL).

    `has_op`: the envelope may have a field op; `always_has_op`: if so, it always has one. Without op
    the operation is derived from the rows after and, with `has_before`, before the change.
    """
    new = f"WHEN {at}.`before` IS NULL THEN 'c' " if has_before else ""
    derived = f"CASE WHEN {at}.`after` IS NULL THEN 'd' {new}ELSE 'u' END"
    return Envelope(at, (f"{at}.`op`" if always_has_op else f"coalesce({at}.`op`, {derived})") if has_op else derived)


def valid_changes(envelope: Struct, *, key: str | None, needs_before: bool) -> Filter:
    """Returns the filter that keeps changes of rows, and turns invalid changes into dead letters.

    `key`: the message's key, if it identifies the row. `needs_before`: without a key, the row
    before the change identifies the row that is deleted.
    """
    op = envelope.field("op")
    checks = [
        required(f"{op} IN ({', '.join(map(text, OPERATIONS))})", "op is none of c, u, r, d and t"),
        required(f"{op} IN ('d', 't') OR {envelope.exists('after')}", "the change has no row after it"),
    ]
    if key is not None:
        checks.append(required(f"{op} = 't' OR {key} IS NOT NULL", "null key"))
    if needs_before:
        reason = "the change has no row before it, and the source has no key"
        checks.append(required(f"{op} NOT IN ('u', 'd') OR {envelope.exists('before')}", reason))
    return Filter(" AND ".join([envelope.exists(), *checks]))


def without_row(envelope: Struct) -> str:
    """Returns Spark SQL for whether the change deletes rows."""
    return f"{envelope.field('op')} IN ('d', 't')"


def change_event(envelope: Struct, fields: Collection[str], partition: str, *, keyed: bool) -> tuple[str, ...]:
    """Returns Spark SQL of the columns CHANGE_EVENT; `fields` are those of `source`."""
    at = {name: envelope.field("source", name) for name in SOURCE if name in fields}
    origin = f"concat_ws('.', {', '.join(at[n] for n in ('name', 'db', 'schema', 'table') if n in at) or text('')})"
    place, lane = _place(at), text("")
    positions = []
    if "gtid" in at:
        gtid = at["gtid"]
        mysql = f"instr({gtid}, ':') > 0"
        has_gtid = f"{gtid} IS NOT NULL AND {gtid} <> ''"
        server = f"left({gtid}, length({gtid}) - length(substring_index({gtid}, ':', -1)) - 1)"
        lane = f"CASE WHEN {has_gtid} THEN CASE WHEN {mysql} THEN {server} ELSE substring_index({gtid}, '-', 1) END ELSE '' END"
        number = f"CASE WHEN {mysql} THEN substring_index({gtid}, ':', -1) ELSE substring_index({gtid}, '-', -1) END"
        positions.append(f"WHEN {has_gtid} THEN concat_ws('/', {_padded(number, 20)}, {place})")
    if not keyed and {"sequence", "lsn"} <= at.keys():
        commit = f"coalesce(get_json_object({at['sequence']}, '$[0]'), '0')"
        positions.append(f"WHEN {at['lsn']} IS NOT NULL THEN concat_ws('/', {_padded(commit, 20)}, {place})")
    position = f"CASE {' '.join(positions)} ELSE {place} END" if positions else place
    time = f"CAST({envelope.field('source', 'ts_ms')} AS BIGINT)" if "ts_ms" in fields else "CAST(NULL AS BIGINT)"
    op = envelope.field("op")
    return (
        op,
        origin,
        lane,
        f"CASE WHEN {op} <> 'r' THEN {position} END",
        f"coalesce({place}, '')",
        time,
        at.get("snapshot", "CAST(NULL AS STRING)"),
        partition,
    )


def _place(at: dict[str, str]) -> str:
    """Returns Spark SQL of the position in the database's log, NULL for an unknown connector."""
    branches = []
    if {"file", "pos", "row"} <= at.keys():
        number = f"substring_index({at['file']}, '.', -1)"
        places = ", ".join((_padded(number, 10), _position(at["pos"], 20), _position(at["row"], 10)))
        branches.append(f"CASE WHEN {at['file']} IS NOT NULL AND {at['pos']} IS NOT NULL THEN concat_ws('/', {places}) END")
    if "lsn" in at:
        branches.append(_position(at["lsn"], 20))
    return f"coalesce({', '.join(branches)})" if branches else "CAST(NULL AS STRING)"


def _position(number: str, width: int) -> str:
    """Returns Spark SQL of a number as a text that sorts like the number, NULL for NULL."""
    return f"tg_position({number}, {width})"


def _padded(text: str, width: int) -> str:
    return f"lpad({text}, {width}, '0')"
