"""The items of the catalog that `tailgate watch` evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tailgate.lake.catalog.formats import Record
from tailgate.lake.catalog.item_fields import ItemFields, ReaderFields


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(ItemFields):
    """A goal for the freshness lag of a relation, the first item of `depends` (`operations.watch.objectives`).

    - `limits_ms`: by figure of the lag (p50, p95, p99, max), its limit.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert(ReaderFields):
    """An alert for each row of `query`, or for an objective that is violated.

    - `objective`: the id of the objective, or 0 for an alert with a query.
    - `hold_ms`: how long a row must exist before the alert fires.
    - `webhooks`, `commands`: both empty for the webhooks of the process `tailgate watch`. `commands`: paths below its secrets folder.
    """

    kind: ClassVar[Literal["alert"]] = "alert"
    is_relation: ClassVar[bool] = False
    objective: int
    hold_ms: int
    severity: str
    webhooks: tuple[AlertWebhook, ...] = ()
    commands: tuple[str, ...] = ()
