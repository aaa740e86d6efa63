"""Functions about the session, each with one value in a statement. The gateway evaluates them (`sql.plan.session_calls`).

Queries of the system catalog have functions of the same names and meaning (`gateway.catalog.functions`).

Source: PostgreSQL 15, "System Information Functions and Operators", "Configuration Settings Functions".
"""

from __future__ import annotations

from tailgate.sql.functions.entry import Function


def _value(name: str, result: str, *arguments: str) -> Function:
    return Function(name, arguments, result, volatility="stable", by_session=True)


ROWS: tuple[Function, ...] = (
    *(_value(name, "name") for name in ("current_user", "session_user", "user", "current_role")),
    *(_value(name, "name") for name in ("current_catalog", "current_database", "current_schema")),
    _value("current_setting", "text", "text"),
    _value("current_setting", "text", "text", "bool"),
    _value("version", "text"),
    _value("pg_backend_pid", "int4"),
)
NAMES = frozenset(row.name for row in ROWS)
