"""The metrics and health of a gateway."""

from __future__ import annotations

import time
from collections.abc import Callable

from tailgate.gateway.freshness.lags import Lag
from tailgate.gateway.server.connection import Connections
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Catalog, Objective
from tailgate.operations.health import BEHIND_MAX_S
from tailgate.operations.labels import by_name, each
from tailgate.operations.metrics import Metrics, Series, labeled
from tailgate.operations.watch.history import relations

P = "tailgate_gateway_"


def connect(metrics: Metrics, gateway: Gateway, connections: Connections) -> None:
    """Sets the readers of all metrics of a gateway."""
    serving, statistics = gateway.serving, gateway.statistics
    mirrors, followers = serving.mirrors, serving.followers
    figures = mirrors.figures
    lanes = {"query": serving.queries.jobs, "catalog": serving.system.lanes[0], "call": serving.system.lanes[1], "followed": followers.jobs}

    metrics.read_one(P + "connections", lambda: len(connections))
    metrics.read_one(P + "sessions", lambda: len(gateway.sessions))
    metrics.read(P + "statements_total", statistics.counts)
    metrics.read(P + "statement_seconds", statistics.durations)
    metrics.read(P + "requests_total", statistics.requests.series)
    metrics.read(P + "request_seconds", statistics.request_durations.series)
    metrics.read(P + "jobs_waiting", lambda: labeled({name: jobs.turns.waiting for name, jobs in lanes.items()}))
    metrics.read(P + "jobs_running", lambda: labeled({name: jobs.running for name, jobs in lanes.items()}))
    metrics.read_one(P + "mirror_entry", lambda: mirrors.state.n)
    metrics.read_one(P + "mirror_time_seconds", lambda: mirrors.state.time / 1000)
    metrics.read_one(P + "mirror_behind_seconds", lambda: figures.behind_s)
    metrics.read(P + "mirror_delay_seconds", figures.delays.series)
    metrics.read(P + "mirror_update_seconds", figures.updates.series)
    metrics.read_one(P + "mirror_relations", lambda: len(mirrors.moving()))
    metrics.read(P + "mirror_changes_total", lambda: by_name(mirrors.state.catalog, figures.rows.series()))
    metrics.read(P + "mirror_change_bytes_total", lambda: by_name(mirrors.state.catalog, figures.bytes.series()))
    metrics.read(P + "freshness_lag_seconds", lambda: _freshness(gateway, lambda lag: None if lag.ms is None else lag.ms / 1000))
    metrics.read(P + "freshness_known", lambda: _freshness(gateway, lambda lag: int(lag.ms is not None)))
    metrics.read_one(P + "followed", lambda: len(followers.feeds))
    metrics.read_one(P + "followers", lambda: sum(count for _, count in list(followers.feeds.values())))
    metrics.read_one(P + "follower_entries_behind", lambda: followers.entries_behind)
    metrics.read_one(P + "client_bytes", lambda: gateway.budget.used)
    metrics.read(P + "cache_entries", lambda: labeled({name: entries for name, (entries, _) in _caches(gateway).items()}))
    metrics.read(P + "cache_bytes", lambda: labeled({name: size for name, (_, size) in _caches(gateway).items()}))
    metrics.read_one(P + "internal_errors_total", lambda: sum(row["count"] for row in gateway.internal_errors.rows()))


def unready(gateway: Gateway) -> str | None:
    """Returns why a gateway is not ready, or None."""
    if gateway.sessions.closed:
        return "the gateway is stopping"
    behind_s = gateway.serving.mirrors.figures.behind_s
    if behind_s > behind_max_s(gateway.serving.progress.catalog):
        return f"the mirrors have been behind the log for {behind_s:.0f} s"
    return None


def behind_max_s(catalog: Catalog) -> float:
    """Returns how long the mirrors of a ready gateway may be behind: BEHIND_MAX_S, or longer if objectives of all relations allow it.

    An objective says nothing about other relations, which have the same mirrors.
    """
    limits_ms = dict.fromkeys((item.id for item in relations(catalog)), 0)
    for objective in catalog.each(Objective):
        relation, limit_ms = objective.depends[0], min(objective.limits_ms.values())
        if relation in limits_ms:  # the objective of an endpoint is not about freshness
            limits_ms[relation] = min(limits_ms[relation] or limit_ms, limit_ms)
    return max(BEHIND_MAX_S, min(limits_ms.values(), default=0) / 1000)


def _freshness(gateway: Gateway, value: Callable[[Lag], float | None]) -> Series:
    """Returns a value of each relation's freshness lag."""
    lags, catalog, now = gateway.serving.freshness.lags, gateway.serving.progress.catalog, time.time_ns() // 1_000_000
    return each(catalog, relations(catalog), lambda item: value(lags.lag(catalog, item, now)))


def _caches(gateway: Gateway) -> dict[str, tuple[int, int]]:
    """Returns the number of entries and the bytes of each cache."""
    texts, plans, bound = gateway.texts.cache, gateway.serving.binder.statements.cache, gateway.bound
    return {
        "results": gateway.answers.polls.size,
        "texts": (len(texts), texts.bytes),
        "plans": (len(plans), plans.bytes),
        "bound": (len(bound), bound.bytes),
    }
