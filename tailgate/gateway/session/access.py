"""The current role of a session, and the plans that this role may run.

The role is that of the sign-in or of SET ROLE. As in PostgreSQL, every role can see names and definitions. Reading rows needs a
privilege. `authorize` checks it before a plan runs and before a cached result is returned (`sql.authorization`). Statements that
change the catalog need ownership and further privileges (`gateway.security.ownership`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import InsufficientPrivilege, InvalidAuthorizationSpecification, InvalidParameterValue, TailgateError
from tailgate.lake.roles import OPERATOR, Role
from tailgate.sql.authorization import Authorized, Demand, Followed, P, Plan, authorize

if TYPE_CHECKING:
    from tailgate.gateway.session.session import Session


class Access:
    """The access rights of one session. `identity`: the id of the role that signed in."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.identity = OPERATOR.id
        self._known: tuple[Catalog | None, str] = (None, "")
        self._role = OPERATOR
        self._asked: tuple[Catalog | None, Role | None] = (None, None)
        self._answers: dict[tuple[Demand, ...], bool] = {}  # cached results of `may`

    @property
    def role(self) -> Role:
        """The session's current role, from the newest catalog. Raises 22023, 28000 or 42501 if it can no longer be used."""
        catalog, wanted = self._session.serving.catalog, self._session.settings["role"]
        if self._known[0] is not catalog or self._known[1] != wanted:
            self._role = self.find(wanted)
            self._known = (catalog, wanted)
        return self._role

    def find(self, wanted: str) -> Role:
        """Returns the role for SET ROLE; "none" is that of the sign-in. Raises 22023, 28000 or 42501."""
        catalog = self._session.serving.catalog
        signed_in = catalog.all_roles().get(self.identity)
        if signed_in is None:
            raise InvalidAuthorizationSpecification(f'role "{self._session.user}" does not exist')
        if wanted in ("none", "", signed_in.name):
            return signed_in
        if not catalog.has_roles:
            return OPERATOR
        role = catalog.find_role(wanted)
        if role is None:
            raise InvalidParameterValue(f'role "{wanted}" does not exist')
        if not signed_in.superuser and role.id not in catalog.acting(signed_in.id):
            raise InsufficientPrivilege(f'permission denied to set role "{wanted}"')
        return role

    # --- plans

    def authorize(self, plan: P) -> Authorized[P]:
        """Returns the plan as one that may be run. Raises 42501 if the role lacks a privilege."""
        return authorize(plan, self.role, self._session.catalog)

    def may(self, plan: Plan) -> bool:
        """Returns whether `authorize` allows the plan. Caches the result until the catalog or the role changes."""
        try:
            asked = self._session.catalog, self.role
            if asked[0] is not self._asked[0] or asked[1] is not self._asked[1]:
                self._asked, self._answers = asked, {}
            known = self._answers.get(plan.demands)
            if known is None:
                known = self._answers[plan.demands] = self._allows(plan)
            return known
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

    # --- ownership

    def owns(self, item: Item) -> bool:
        """Returns whether the role owns an item, is a member of its owner, or is a superuser."""
        return self.role.superuser or item.owner in self._session.serving.catalog.acting(self.role.id)

    def check_superuser(self, what: str) -> None:
        if not self.role.superuser:
            raise InsufficientPrivilege(f"permission denied to {what}")
