"""Statistics of statements and requests: number, duration and SQLSTATE by lane for metrics, and figures by template."""

from __future__ import annotations

from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.session.statements.templates import Call, Templates
from tailgate.operations.metrics import Counter, Histogram


class StatementStatistics:
    """The statistics of all statements of a gateway. Only the event loop changes them.

    `requests`: the number of requests over HTTP by endpoint and status.
    """

    def __init__(self, budget: Budget) -> None:
        self.counts, self.durations = Counter(), Histogram()
        self.requests = Counter()
        self.templates = Templates(budget)

    def ended(self, call: Call) -> None:
        """Counts a statement that has ended."""
        self.counts.add(call.lane, call.sqlstate)
        self.durations.observe(call.seconds, call.lane)
        self.templates.ended(call)
