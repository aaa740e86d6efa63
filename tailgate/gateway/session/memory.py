"""The memory of a session and the role that is charged for it."""

from __future__ import annotations

from tailgate.gateway.resources.budgets import SESSION_BYTES, Budget, Charge
from tailgate.gateway.resources.concurrency import NOBODY, Requester

SAVEPOINT_BYTES = 12 << 10  # memory of one savepoint: a copy of the settings


class SessionMemory:
    """The budget of a session. `requester`: the role whose limits of concurrent work its statements use."""

    def __init__(self, limit: int, gateway: Budget) -> None:
        self._limit = limit
        self.budget = Budget("the session", limit, gateway)
        self.requester = NOBODY
        self._savepoints = Charge(self.budget)

    def sign_in(self, requester: Requester, parent: Budget) -> None:
        """Charges the session to the budget of its role. Raises 53200 if the limit is exceeded."""
        self.requester = requester
        self.budget = Budget("the session", self._limit, parent)
        self.budget.charge(SESSION_BYTES)
        self._savepoints = Charge(self.budget)

    def charge_savepoints(self, count: int) -> None:
        """Charges the memory of `count` savepoints. Raises 53200 if the limit is exceeded."""
        self._savepoints.set(SAVEPOINT_BYTES * count)

    def close(self) -> None:
        """Releases everything that is charged to the session."""
        self.budget.close()
