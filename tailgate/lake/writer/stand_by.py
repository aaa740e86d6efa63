"""Engines that stand by (`lake.store.stand_by`): the lock and the lease that they wait for."""

from __future__ import annotations

from collections.abc import Hashable

from tailgate.lake.folder import Lake
from tailgate.lake.store import stand_by as places
from tailgate.lake.store.stand_by import StandBy
from tailgate.lake.writer.engines import LEASE_S, LOCK, lease

PLACE = "stand-by"


def stand_by(lake: Lake) -> StandBy[tuple[int, Hashable]]:
    """Returns the place of the engine that stands by, once no other engine has it."""
    return StandBy(lake.store, PLACE, LOCK, lambda: lease(lake), LEASE_S)


def standing_by(lake: Lake) -> bool:
    """Returns whether an engine stands by, or has begun to replace another."""
    return places.standing_by(lake.store, PLACE)
