"""The columns of the relations in the schema `tailgate`: what exists, how it runs, and how fresh it is.

A gateway computes their rows when a statement reads them. They are not in the log and have no history.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailgate.lake.types import BOOL, FLOAT8, INT8, JSONB, TEXT, TIMESTAMPTZ, Field

SUPERUSER_RELATIONS = frozenset({"internal_errors"})  # only superusers read these

_SCHEMA, _NAME, _KIND = Field("schema", TEXT), Field("name", TEXT), Field("kind", TEXT)
_STATUS = (Field("status", TEXT), Field("error", TEXT))


def _fields(names: str, type: Field) -> tuple[Field, ...]:
    """Returns columns with the type of another one."""
    return tuple(Field(name, type.type) for name in names.split())


_INT8, _FLOAT8, _TEXT, _TIME = (Field("", type) for type in (INT8, FLOAT8, TEXT, TIMESTAMPTZ))

# In the order of their ids: a new relation is added at the end.
COLUMNS: Mapping[str, tuple[Field, ...]] = {
    "sources": (
        _SCHEMA,
        _NAME,
        *_fields("type topic", _TEXT),
        *_STATUS,
        *_fields("records dead_letters bytes lag", _INT8),
        Field("per_second", FLOAT8),
        Field("last_message", TIMESTAMPTZ),
        Field("last_error", TEXT),
    ),
    "views": (_SCHEMA, _NAME),
    "materialized_views": (_SCHEMA, _NAME, *_STATUS, Field("rows", INT8), Field("percent", FLOAT8)),
    "sinks": (_SCHEMA, _NAME, *_fields("type topic", _TEXT), *_STATUS),
    "subscriptions": (_SCHEMA, _NAME, Field("on_name", TEXT), *_fields("acknowledged lag_ms retention_ms", _INT8), *_STATUS),
    "tables": (_SCHEMA, _NAME),
    "secrets": (_SCHEMA, _NAME),
    "connections": (_SCHEMA, _NAME, Field("type", TEXT)),
    "objectives": (
        _SCHEMA,
        _NAME,
        *_fields("on_name goals state", _TEXT),
        Field("since", TIMESTAMPTZ),
        Field("above_ms", INT8),
        Field("reason", TEXT),
        *_fields("burn_rate_5_minutes burn_rate_1_hour burn_rate_6_hours budget_left_percent", _FLOAT8),
    ),
    "endpoints": (_SCHEMA, _NAME, *_fields("method path", _TEXT)),
    # which objects read or use which others
    "dependencies": (_SCHEMA, _NAME, _KIND, *_fields("on_schema on_name on_kind", _TEXT)),
    # errors of the engine and the gateways
    "internal_errors": (
        *_fields("process sqlstate error statement version", _TEXT),
        Field("count", INT8),
        *_fields("first_at last_at", _TIME),
    ),
    # how fresh the relations are that the role may read
    "freshness": (
        _SCHEMA,
        _NAME,
        _KIND,
        Field("lag_ms", INT8),
        *_fields("unknown slowest_source", _TEXT),
        *_fields("kafka_ms wait_ms tick_ms commit_ms mirror_ms", _INT8),
        *(Field(f"{figure}_{window}_ms", INT8) for window in ("minute", "hour", "day") for figure in ("p50", "p95", "p99", "max")),
    ),
    # the lag of the same relations in the last 7 days
    "freshness_history": (_SCHEMA, _NAME, _KIND, Field("at", TIMESTAMPTZ), *_fields("samples unknown p50_ms p95_ms p99_ms max_ms", _INT8)),
    # what clients send, of the roles whose sessions the role may see
    "statements": (
        Field("gateway", INT8),
        *_fields("role lane statement", _TEXT),
        *_fields("calls rows errors", _INT8),
        *_fields("total_ms p50_ms p95_ms max_ms", _FLOAT8),
        Field("slowest_parameters", TEXT),
        *_fields("first_at last_at", _TIME),
    ),
    # the alerts of the last 7 days
    "alerts": (
        *_fields("alert key severity state summary hint", _TEXT),
        Field("fields", JSONB),
        *_fields("since updated_at resolved_at", _TIME),
        Field("silenced", BOOL),
        *_fields("first_notification last_notification", _INT8),
    ),
    # the size of stored relations in the last 7 days, of those that the role may read
    "size_history": (_SCHEMA, _NAME, _KIND, Field("at", TIMESTAMPTZ), *_fields("rows bytes", _INT8)),
    # what sinks and subscriptions hold of the log
    "holds": (_SCHEMA, _NAME, _KIND, *_fields("entries bytes age_ms", _INT8), Field("percent", FLOAT8), Field("stopped", TEXT)),
}
