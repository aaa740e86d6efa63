"""The metrics that exist. Their names are a contract; docs/operations/metrics.md lists the same.

A name has a prefix, the unit if there is one, and `_total` if it only grows. Labels never contain a
value of a row. `relation`, `source` and `sink` are names with their schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. `name`: with the prefix `tailgate_`."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()


OMITTED = Metric(
    "tailgate_metrics_omitted_series", "gauge", "series", "Series that are not shown because a metric has more than 1,000.", ("metric",)
)

ENGINE = (
    Metric("tailgate_engine_ticks_total", "counter", "ticks", "Ticks whose log entry is durable."),
    Metric("tailgate_engine_tick_failures_total", "counter", "ticks", "Ticks that failed; a failed tick is repeated."),
    Metric(
        "tailgate_engine_tick_seconds", "histogram", "seconds",
        "Duration of ticks by phase: circuit (read, decode, operators, state), commit (log entry), total.", ("phase",),
    ),
    Metric("tailgate_engine_entry", "gauge", "", "Number of the newest log entry."),
    Metric("tailgate_engine_entry_time_seconds", "gauge", "seconds since 1970", "Time of the newest log entry."),
    Metric("tailgate_engine_source_up", "gauge", "0 or 1", "Whether a source is read; 0 if it is stalled, failed or paused.", ("source",)),
    Metric("tailgate_engine_source_records_total", "counter", "records", "Records that ticks have read.", ("source",)),
    Metric("tailgate_engine_source_bytes_total", "counter", "bytes", "Bytes of these records.", ("source",)),
    Metric("tailgate_engine_source_dead_letters_total", "counter", "records", "Records that could not be decoded.", ("source",)),
    Metric("tailgate_engine_source_last_record_seconds", "gauge", "seconds since 1970", "Kafka's time of the newest record.", ("source",)),
    Metric(
        "tailgate_engine_source_records_behind", "gauge", "records",
        "Records of its topic that no committed tick has read; offsets without a record count, too.", ("source",),
    ),
    Metric("tailgate_engine_relation_changes_total", "counter", "rows", "Changed rows in log entries of ticks.", ("relation",)),
    Metric("tailgate_engine_relation_change_bytes_total", "counter", "bytes", "Bytes of these changes.", ("relation",)),
    Metric("tailgate_engine_operator_rows_in", "gauge", "rows", "Rows that an operator received in the last ticks.", ("node", "operator")),
    Metric("tailgate_engine_operator_rows_out", "gauge", "rows", "Rows that it emitted in these ticks.", ("node", "operator")),
    Metric("tailgate_engine_operator_seconds", "gauge", "seconds", "Time that it took in these ticks.", ("node", "operator")),
    Metric("tailgate_engine_operator_state_rows", "gauge", "rows", "Rows of its state.", ("node", "operator")),
    Metric("tailgate_engine_operator_state_bytes", "gauge", "bytes", "Estimated size of its state.", ("node", "operator")),
    Metric(
        "tailgate_engine_operator_late_rows_total", "counter", "rows",
        "Rows that it dropped because their window was closed.", ("node", "operator"),
    ),
    Metric("tailgate_engine_state_versions", "gauge", "versions", "Versions of the state since the last uploaded snapshot."),
    Metric("tailgate_engine_view_failing", "gauge", "0 or 1", "Whether reading a view ends with an error.", ("relation",)),
    Metric(
        "tailgate_engine_view_seconds", "gauge", "seconds",
        "Time that its operators took in the last ticks; those that views share count for each view.", ("relation",),
    ),
    Metric("tailgate_engine_view_state_rows", "gauge", "rows", "Rows of the state of its operators.", ("relation",)),
    Metric("tailgate_engine_view_state_bytes", "gauge", "bytes", "Estimated size of this state.", ("relation",)),
    Metric("tailgate_engine_backfill_percent", "gauge", "percent", "Progress of a running backfill.", ("relation",)),
    Metric("tailgate_engine_backfill_rows", "gauge", "rows", "Rows that it has sent.", ("relation",)),
    Metric(
        "tailgate_engine_backfill_left_seconds", "gauge", "seconds",
        "Estimate of the time until its end, from its progress until now.", ("relation",),
    ),
    Metric("tailgate_engine_round_entries_behind", "gauge", "entries", "Log entries that the Delta tables do not contain yet."),
    Metric("tailgate_engine_inbox_waiting", "gauge", "writes", "Durable writes that no tick has read yet."),
    Metric("tailgate_engine_reader_entries_held", "gauge", "entries", "Log entries that a sink or subscription holds.", ("reader",)),
    Metric(
        "tailgate_engine_reader_held_bytes", "gauge", "bytes",
        "Size of these entries, up to the end of a file with several.", ("reader",),
    ),
    Metric("tailgate_engine_read_ahead_records", "gauge", "records", "Records of Kafka that are fetched and not in a committed tick."),
    Metric("tailgate_engine_read_ahead_bytes", "gauge", "bytes", "Memory of these records, but for sources with a transaction topic."),
    Metric("tailgate_engine_rocksdb_bytes", "gauge", "bytes", "Memory of RocksDB in the JVM: block cache, write buffers and indexes."),
    Metric("tailgate_engine_state_disk_bytes", "gauge", "bytes", "Size of the files of the state on this machine's disk."),
    Metric("tailgate_engine_log_bytes", "gauge", "bytes", "Size of the log."),
    OMITTED,
)  # fmt: skip

GATEWAY = (
    Metric("tailgate_gateway_connections", "gauge", "connections", "Open connections, including those that have not signed in."),
    Metric("tailgate_gateway_sessions", "gauge", "sessions", "Sessions that have signed in."),
    Metric(
        "tailgate_gateway_statements_total", "counter", "statements",
        "Statements by lane and SQLSTATE; 00000 is success, other one that PostgreSQL lacks. "
        "Lanes: memory, query, catalog, follow, write, definition, session, endpoint, unknown.",
        ("lane", "sqlstate"),
    ),
    Metric("tailgate_gateway_statement_seconds", "histogram", "seconds", "Duration of statements, from receipt to the answer.", ("lane",)),
    Metric(
        "tailgate_gateway_requests_total", "counter", "requests",
        "Requests over HTTP by endpoint and status; no endpoint if the path or the role has none.", ("endpoint", "status"),
    ),
    Metric(
        "tailgate_gateway_request_seconds", "histogram", "seconds",
        "Duration of requests over HTTP by endpoint, until the response is known; a stream ends later.", ("endpoint",),
    ),
    Metric("tailgate_gateway_jobs_waiting", "gauge", "statements", "Statements that wait for a turn.", ("threads",)),
    Metric("tailgate_gateway_jobs_running", "gauge", "statements", "Statements that run on a thread.", ("threads",)),
    Metric("tailgate_gateway_mirror_entry", "gauge", "", "Number of the log entry that the mirrors show."),
    Metric("tailgate_gateway_mirror_time_seconds", "gauge", "seconds since 1970", "Time of this entry."),
    Metric("tailgate_gateway_mirror_behind_seconds", "gauge", "seconds", "Time since the mirrors were last at the end of the log."),
    Metric("tailgate_gateway_mirror_delay_seconds", "histogram", "seconds", "Time from the start of a tick until the mirrors show it."),
    Metric("tailgate_gateway_mirror_update_seconds", "histogram", "seconds", "Time that the mirrors take to apply new log entries."),
    Metric("tailgate_gateway_mirror_relations", "gauge", "relations", "Relations that are mirrored."),
    Metric("tailgate_gateway_mirror_changes_total", "counter", "rows", "Changed rows applied to the mirror of a relation.", ("relation",)),
    Metric("tailgate_gateway_mirror_change_bytes_total", "counter", "bytes", "Bytes of these changes in memory.", ("relation",)),
    Metric("tailgate_gateway_freshness_lag_seconds", "gauge", "seconds", "Freshness lag of a relation; absent if unknown.", ("relation",)),
    Metric("tailgate_gateway_freshness_known", "gauge", "0 or 1", "Whether the freshness lag of a relation is known.", ("relation",)),
    Metric("tailgate_gateway_followed", "gauge", "feeds", "Relations and queries that clients follow."),
    Metric("tailgate_gateway_followers", "gauge", "followers", "Clients' TAIL, SUBSCRIBE and subscriptions that follow them."),
    Metric("tailgate_gateway_follower_entries_behind", "gauge", "entries", "Log entries that the slowest follower has not received."),
    Metric("tailgate_gateway_client_bytes", "gauge", "bytes", "Memory charged to clients and caches."),
    Metric("tailgate_gateway_cache_entries", "gauge", "entries", "Entries of a cache.", ("cache",)),
    Metric("tailgate_gateway_cache_bytes", "gauge", "bytes", "Size of a cache.", ("cache",)),
    Metric("tailgate_gateway_internal_errors_total", "counter", "errors", "Unexpected errors."),
    OMITTED,
)  # fmt: skip

SINKS = (
    Metric("tailgate_sinks_up", "gauge", "0 or 1", "Whether a sink writes; 0 if it retries or has stopped.", ("sink",)),
    Metric("tailgate_sinks_events_total", "counter", "events", "Events that Kafka has committed.", ("sink",)),
    Metric("tailgate_sinks_retries_total", "counter", "sessions", "Sessions with Kafka that failed and are tried again.", ("sink",)),
    Metric("tailgate_sinks_entries_behind", "gauge", "entries", "Log entries that a sink has not processed.", ("sink",)),
    Metric("tailgate_sinks_lag_seconds", "gauge", "seconds", "Time since the newest processed entry, if there are later ones.", ("sink",)),
    OMITTED,
)

UP = (
    Metric("tailgate_up_process_ready", "gauge", "0 or 1", "Whether a child process has announced that it is ready.", ("process",)),
    Metric("tailgate_up_process_ends_total", "counter", "ends", "How often a child process has ended since the start.", ("process",)),
)

WATCH = (
    Metric("tailgate_watch_alerts", "gauge", "alerts", "Active alerts by name.", ("alert",)),
    Metric("tailgate_watch_notifications_total", "counter", "notifications", "Id of the newest notification: how many there have been."),
    Metric("tailgate_watch_undelivered", "gauge", "notifications", "Notifications that a target has not received yet.", ("target",)),
)
