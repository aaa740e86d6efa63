"""Computes ages of orders from the times of production and the counts that a reader received.

    produced     order n ──► time                    (the load's record)
    received     (time, group, count), in order      (the reader's record)

The kth order of a group is readable at the first time when a count of k or more was received.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Received:
    """The counts that a reader received for groups whose counts only grow, in order of arrival."""

    times: np.ndarray
    groups: np.ndarray
    counts: np.ndarray


class Missing(Exception):
    """The error for orders of the measured interval that the reader never received."""


def ages_ms(produced: np.ndarray, groups: np.ndarray, received: Received, since: float, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ages in ms, and the production times, of orders produced in [since, until).

    `groups` has each order's group, or -1 for orders without a measured age. Raises Missing.
    """
    ages: list[np.ndarray] = []
    times: list[np.ndarray] = []
    by_group = np.argsort(received.groups, kind="stable")
    bounds = np.searchsorted(received.groups[by_group], np.arange(groups.max(initial=-1) + 2))
    for group in np.unique(groups[groups >= 0]):
        mine = produced[groups == group]
        rows = by_group[bounds[group] : bounds[group + 1]]
        highest = np.maximum.accumulate(received.counts[rows])  # a smaller count that arrives late has no effect
        ranks = np.arange(1, len(mine) + 1)
        measured = (mine >= since) & (mine < until)
        first = np.searchsorted(highest, ranks[measured])
        if (first == len(highest)).any():
            raise Missing(f"{(first == len(highest)).sum()} orders of group {group} were not received")
        ages.append((received.times[rows][first] - mine[measured]) * 1000)
        times.append(mine[measured])
    return np.concatenate([[], *ages]), np.concatenate([[], *times])


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Returns p50, p95, p99 and max; each is one of the values."""
    ordered = np.sort(values)
    last = len(ordered) - 1
    return {name: round(float(ordered[min(int(len(ordered) * q), last)]), 1) for name, q in QUANTILES.items()} if last >= 0 else {}
