"""The plans that a session's role may run.

As in PostgreSQL, every role can see names and definitions. Reading rows needs a privilege. `authorize` checks it before a plan runs
and before a cached result is returned (`sql.authorization`). Statements that change the catalog need ownership and further privileges
(`gateway.security.ownership`).
"""

from __future__ import annotations

from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.naming import Naming
from tailgate.gateway.session.roles import CurrentRole
from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import InsufficientPrivilege, TailgateError
from tailgate.sql.authorization import Authorized, Demand, Followed, P, Plan, authorize, may_see

ANSWERS_MAX = 1_000  # cached answers of a session, one for each set of columns that its statements read


class Access:
    """The access rights of one session."""

    def __init__(self, serving: Serving, current: CurrentRole, naming: Naming) -> None:
        self._serving, self._current, self._naming = serving, current, naming
        self._key: tuple[Catalog | None, Role | None] = (None, None)
        self._answers: dict[tuple[Demand, ...], bool] = {}  # cached results of `may`

    @property
    def role(self) -> Role:
        """Returns the role whose privileges apply to statements. Raises 22023, 28000 or 42501 if it can no longer be used."""
        return self._current.get()

    @property
    def session_role(self) -> Role:
        """Returns the role of SET SESSION AUTHORIZATION or of the sign-in. Raises 22023, 28000 or 42501 if it can no longer be used."""
        return self._current.of_session()

    # --- plans

    def authorize(self, plan: P) -> Authorized[P]:
        """Returns the plan as one that may be run. Raises 42501 if the role lacks a privilege."""
        return authorize(plan, self.role, self._naming.seen.catalog)

    def may(self, plan: Plan) -> bool:
        """Returns whether `authorize` allows the plan. Caches the result until the catalog or the role changes."""
        try:
            key = self._naming.seen.catalog, self.role
            if key[0] is not self._key[0] or key[1] is not self._key[1]:
                self._key, self._answers = key, {}
            answer = self._answers.get(plan.demands)
            if answer is None:
                if len(self._answers) >= ANSWERS_MAX:
                    self._answers.clear()
                answer = self._answers[plan.demands] = self._allows(plan)
            return answer
        except TailgateError:
            return False  # the role no longer exists: the statement itself raises the error

    def _allows(self, plan: Plan) -> bool:
        try:
            self.authorize(plan)
        except TailgateError:
            return False
        return True

    def may_read(self, item: Item) -> bool:
        """Returns whether the role may see a relation's rows and errors."""
        return self.may(Followed(item))

    def may_see(self, item: Item) -> bool:
        """Returns whether the role may see an item's errors, which can contain values of rows."""
        return may_see(item, self.role, self._naming.seen.catalog)

    # --- ownership

    def owns(self, item: Item) -> bool:
        """Returns whether the role owns an item, is a member of its owner, or is a superuser."""
        return self.role.superuser or item.owner in self._serving.progress.catalog.acting(self.role.id)

    def check_superuser(self, action: str) -> None:
        """Raises 42501 unless the role is a superuser."""
        if not self.role.superuser:
            raise InsufficientPrivilege(f"permission denied to {action}")
