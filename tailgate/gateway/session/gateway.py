"""State shared by all sessions of a gateway process: the lake, its query service, the engine, caches, limits, and the other sessions."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from tailgate.gateway.answers.answers import Answers
from tailgate.gateway.control import Control
from tailgate.gateway.freshness import rows as freshness
from tailgate.gateway.freshness.latencies import Latencies
from tailgate.gateway.notifications.exchange import Exchange
from tailgate.gateway.resources.background import Background
from tailgate.gateway.resources.budgets import Budget, Cache
from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.security.tls import Tls
from tailgate.gateway.serving.prepared import SessionCatalog
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.peers import Peers
from tailgate.gateway.session.registry import Sessions
from tailgate.gateway.session.statements.parsing import StatementCache
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.session.statements.statistics import StatementStatistics
from tailgate.gateway.settings.processes import Processes
from tailgate.gateway.settings.settings import NO_DEFAULTS, checked_defaults
from tailgate.gateway.writes.insert_groups import InsertGroups
from tailgate.gateway.writes.sequence_ranges import Ranges
from tailgate.lake import peers
from tailgate.lake.catalog import Catalog
from tailgate.lake.folder import Lake
from tailgate.lake.host.internal_errors import InternalErrors
from tailgate.operations.settings.process import ProcessSettings
from tailgate.operations.watch.notifications import Notifications
from tailgate.sql.lexer.literal_masking import mask_literals

PATHS_MAX = 1_000  # cached catalogs, one per search path
BOUND_BYTES = 32 << 20  # of cached bound statements
ROLES_MAX = 10_000  # budgets of roles, before those of roles without sessions are removed


class Gateway:
    """The state that all sessions of a process share.

    `insecure`: clients on other machines are trusted like local ones. `defaults`: the values of settings with which sessions begin.
    `settings`: of this process, None in tests. `control_listen`: the address by which gateways on other machines reach this one.
    """

    def __init__(
        self,
        lake: Lake,
        serving: Serving,
        tls: Tls | None = None,
        *,
        insecure: bool = False,
        defaults: Mapping[str, str] = NO_DEFAULTS,
        settings: ProcessSettings | None = None,
        control_listen: str | None = None,
    ) -> None:
        self.defaults, self.settings = defaults, settings
        self.processes = Processes(lake.store, settings)
        if settings is not None:
            settings.on_change("set", lambda words: setattr(self, "defaults", checked_defaults(words)))
        self.lake, self.serving, self.tls, self.insecure = lake, serving, tls, insecure
        self.memory, self.budget = serving.memory, serving.budget
        self.control = Control(lake)
        self.ranges = Ranges(self.control)
        self.insert_groups = InsertGroups()
        self.background = Background()
        self.internal_errors = InternalErrors(mask_literals)
        self.notifications = Notifications(lake)
        self.secret = peers.secret(lake)
        self.sessions = Sessions(lambda: serving.progress.catalog)
        self.statistics = StatementStatistics(self.budget)
        self.latencies = Latencies()
        self.peers = Peers(lake, self.sessions, self.internal_errors, self.statement_rows, self._steps, self._lags, self.background)
        self.peers.listen = control_listen
        self.exchange = Exchange(self.peers.ask, serving.progress.wait_inbox, self.background)
        self.peers.queries["notify"] = self.exchange.received
        self.answers = Answers(serving, self.background)
        self.texts = StatementCache(serving.workers, self.budget)
        self.bound: Cache[tuple[bytes, tuple[int, ...], Hashable], Bound] = Cache(self.budget, BOUND_BYTES)
        self._role_budgets: dict[int, Budget] = {}
        self._seen: dict[tuple[tuple[str, ...], str], SessionCatalog] = {}  # by path and time zone

    def cancel(self, process: int, secret: bytes) -> None:
        """Handles a cancel request. Forwards it to the gateway of the session if no session here has the id."""
        if not self.sessions.cancel(process, secret):
            self.peers.cancel(process, secret)

    def _lags(self) -> dict[str, float | None]:
        return freshness.present(self.serving.freshness.lags, self.serving.progress.catalog)

    def _steps(self, after: int) -> list[object]:
        """Returns the steps of freshness lag and latency that have ended, later than `after`."""
        lags, catalog = self.serving.freshness.lags, self.serving.progress.catalog
        return [*freshness.steps(lags, after), *self.latencies.steps(catalog, after)]

    def statement_rows(self, requester: Requester) -> list[dict[str, Any]]:
        """Returns the rows of tailgate.statements of this gateway: of the roles whose sessions the requester may see."""
        catalog = self.serving.progress.catalog
        roles, acting = catalog.all_roles(), catalog.acting(requester.role)

        def name(role: int) -> str | None:
            return roles[role].name if role in roles and (requester.superuser or role in acting) else None

        return self.statistics.rows(os.getpid(), name)

    def seen(self, base: Catalog, n: int, path: tuple[str, ...], time_zone: str) -> SessionCatalog:
        """Returns the catalog as seen along a search path and in a time zone: one object for all sessions with these."""
        key = path, time_zone
        session_catalog = self._seen.get(key)
        if session_catalog is None or session_catalog.catalog.items is not base.items or session_catalog.catalog_n != n:
            if len(self._seen) >= PATHS_MAX:
                self._seen.clear()
            catalog = base.along(path, time_zone)
            session_catalog = self._seen[key] = SessionCatalog(catalog, n, None if catalog is base else key)
        return session_catalog

    def remember(self, text: bytes, oids: Sequence[int], scope: Hashable, bound: Bound) -> None:
        """Caches a bound statement by its text, parameter types and scope."""
        self.bound.put((text, tuple(oids), scope), bound, len(text) + bound.size)

    def budget_of(self, role: int, superuser: bool) -> Budget:
        """Returns the budget of all sessions of a role. Superusers share the budget of the gateway."""
        if superuser:
            return self.budget
        if role not in self._role_budgets and len(self._role_budgets) >= ROLES_MAX:
            self._role_budgets = {id: budget for id, budget in self._role_budgets.items() if budget.used}
        return self._role_budgets.setdefault(role, Budget("the role", self.memory.role, self.budget))
