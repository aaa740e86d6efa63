"""The rows of pg_prepared_statements, pg_cursors and pg_locks: objects of the session that queries them; those of pg_timezone_names.

Source: PostgreSQL 15, src/backend/commands/prepare.c (pg_prepared_statement), src/backend/utils/mmgr/portalmem.c (pg_cursor),
src/backend/utils/adt/lockfuncs.c (pg_lock_status).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tailgate.gateway.resources.advisory_locks import Lock
from tailgate.gateway.session.registry import moment
from tailgate.gateway.session.session import Session
from tailgate.lake.catalog.schemas import is_temporary
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.values.times import zones

Row = dict[str, Any]


def prepared_statements(session: Session) -> list[Row]:
    """Returns the rows for named statements. Tailgate does not count plans."""
    return [
        {
            "name": statement.name,
            "statement": mask_secrets(statement.command or statement.raw.decode("utf-8", "replace")),
            "prepare_time": moment(statement.created_s),
            "parameter_types": [str(type) for type in statement.bound.parameters],
            "from_sql": bool(statement.command),
            "generic_plans": 0,
            "custom_plans": 0,
        }
        for statement in list(session.statements.values())
        if statement.name
    ]


def cursors(session: Session) -> list[Row]:
    """Returns the rows for cursors and for portals of the extended protocol."""
    return [
        {
            "name": portal.name,
            "statement": mask_secrets(portal.bound.text),
            "is_holdable": portal.hold,
            "is_binary": portal.is_cursor and any(portal.formats),
            "is_scrollable": portal.is_cursor and portal.scroll,
            "creation_time": moment(portal.created_s),
        }
        for portal in list(session.portals.values())
    ]


def locks(session: Session) -> list[Row]:
    """Returns the lock of the transaction itself, those of LOCK TABLE and of tables that the transaction has written, and advisory ones."""
    transaction, process = session.transaction, session.client.process
    own = {"virtualtransaction": f"{process}/1", "pid": process, "granted": True}
    held: Row = {"locktype": "virtualxid", "virtualxid": f"{process}/1", "mode": "ExclusiveLock", "fastpath": True}
    written = (id for id in transaction.writes.changes if not is_temporary(id))
    modes = transaction.locks | {(id, "row exclusive") for id in written}
    return [
        held | own,
        *(
            {"locktype": "relation", "database": session.client.database_oid, "relation": id, "mode": _shown(mode), "fastpath": False} | own
            for id, mode in sorted(modes)
        ),
        *(_advisory(lock) | {"database": session.client.database_oid} | own for lock in transaction.advisory_locks.held),
    ]


def _advisory(lock: Lock) -> Row:
    """Returns the columns of an advisory lock. A bigint is shown as two unsigned halves."""
    upper, lower = lock.key if len(lock.key) == 2 else (lock.key[0] >> 32, lock.key[0])
    place = {"classid": upper & 0xFFFFFFFF, "objid": lower & 0xFFFFFFFF, "objsubid": 2 if len(lock.key) == 2 else 1}
    return {"locktype": "advisory", "mode": lock.mode, "fastpath": False} | place


def _shown(mode: str) -> str:
    """Returns the name of a mode of LOCK TABLE in pg_locks."""
    return "".join(word.capitalize() for word in mode.split()) + "Lock"


def time_zones(session: Session) -> list[Row]:
    """Returns the rows of pg_timezone_names."""
    names = ("name", "abbrev", "utc_offset", "is_dst")
    return [dict(zip(names, row, strict=True)) for row in zones.named(int(time.time()))]


ROWS: dict[str, Callable[[Session], list[Row]]] = {
    "pg_prepared_statements": prepared_statements,
    "pg_cursors": cursors,
    "pg_locks": locks,
    "pg_timezone_names": time_zones,
}
