"""Engines that stand by (`lake.store.stand_by`): the lock and the lease that they wait for."""

from __future__ import annotations

from collections.abc import Hashable

from tailgate.lake.folder import Lake
from tailgate.lake.store.stand_by import StandBy
from tailgate.lake.writer.engines import ANNOUNCEMENT, LOCK, announced

PLACE = "stand-by.lock"


def stand_by(lake: Lake) -> StandBy:
    """Returns the place of the engine that stands by, once no other engine has it."""
    return StandBy(lake.store, PLACE, LOCK, lambda: _lease(lake))


def standing_by(lake: Lake) -> bool:
    """Returns whether an engine stands by, or has begun to replace another."""
    return lake.store.locked(PLACE)


def _lease(lake: Lake) -> Hashable:
    """Returns epoch and time of the lease; None if no engine of the newest epoch has one."""
    try:
        announcement = announced(lake)
        renewed = lake.store.renewed(ANNOUNCEMENT)
    except FileNotFoundError:
        return None
    newest = lake.log.newest()
    if announcement is None or not announcement.lease or newest is None or newest.epoch != announcement.epoch:
        return None
    return announcement.epoch, renewed
