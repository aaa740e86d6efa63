"""The items of the catalog that `tailgate watch` evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tailgate.lake.catalog.item_fields import ItemFields


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
