"""The items that other processes than the engine evaluate: endpoints (`gateway.http`), objectives and alerts (`operations.watch`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tailgate.lake.catalog.formats import ConnectionSettings, EndpointMethod, Record, option
from tailgate.lake.catalog.item_fields import ItemFields, Namespace, ReaderFields
from tailgate.lake.types import Field, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ItemFields):
    """A goal for the freshness lag of a relation, or the latency of an endpoint: the first item of `depends`.

    - `limits_ms`: by figure of it (p50, p95, p99, max), its limit.
    - `window_ms`: the time over which figures are computed.
    - `availability_ppm`: the share of time, in millionths, in which the goal must be met.
    """

    kind: ClassVar[Literal["objective"]] = "objective"
    is_relation: ClassVar[bool] = False
    limits_ms: Mapping[str, int]
    window_ms: int
    availability_ppm: int


@dataclass(frozen=True, slots=True)
class AlertWebhook(Record):
    """A URL that receives the notifications of an alert. `secret`: the id of the secret with the key of its signatures, or 0."""

    url: str
    format: Literal["plain", "alertmanager"] = "plain"
    secret: int = 0


@dataclass(frozen=True, slots=True)
class AlertTopic(Record):
    """A topic of Kafka that receives the notifications of an alert. `kafka`: the settings for access to the brokers."""

    topic: str
    brokers: str
    kafka: ConnectionSettings = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert(ReaderFields):
    """An alert for each row of `query`, or for an objective that is violated.

    - `objective`: the id of the objective, or 0 for an alert with a query.
    - `hold_ms`: how long a row must exist before the alert fires.
    - `webhooks`, `commands`, `topics`: all empty for the webhooks of the process `tailgate watch`. `commands`: paths below its secrets
      folder.
    """

    kind: ClassVar[Literal["alert"]] = "alert"
    is_relation: ClassVar[bool] = False
    objective: int
    hold_ms: int
    severity: str
    webhooks: tuple[AlertWebhook, ...] = ()
    commands: tuple[str, ...] = ()
    topics: tuple[AlertTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(ReaderFields):
    """A query, or a statement that writes with RETURNING, which gateways serve over HTTP. `query` has the parameters $1, $2, …

    - `method`, `path`: of the requests that it answers. A segment `:name` of the path is a parameter.
    - `parameters`: names and types of $1, $2, …, also of those that are in the path.
    - `defaults`: by parameter, the text of the value that it has if a request does not set it; None is NULL.
    - `numbers`: whether bigint and numeric are numbers or strings in JSON. `keys_ms`: how long an Idempotency-Key is kept.
    """

    kind: ClassVar[Literal["endpoint"]] = "endpoint"
    is_relation: ClassVar[bool] = False
    namespace: ClassVar[Namespace] = "endpoint"
    method: EndpointMethod
    path: str
    parameters: tuple[Field, ...] = field(default=(), metadata=option(always=True))
    defaults: Mapping[str, str | None] = field(default_factory=dict, metadata=option(always=True))
    numbers: Literal["number", "text"] = "number"
    keys_ms: int = 0

    @property
    def types(self) -> tuple[Type, ...]:
        """Returns the types of the parameters."""
        return tuple(p.type for p in self.parameters)
