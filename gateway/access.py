"""What a session may do: the role that it acts as, and the plans that this role may evaluate.

The role is that of the sign-in, or the one that SET ROLE names. Names and definitions can be seen by everybody, as in PostgreSQL. Rows
need a privilege, which `authorize` asks for before anything is evaluated, ready bytes included (`sql.authorization`). Statements that
change the catalog need ownership and other privileges besides (`gateway.ownership`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.catalog import Catalog, Item
from lake.errors import InsufficientPrivilege, InvalidAuthorizationSpecification, InvalidParameterValue, TailgateError
from lake.roles import OPERATOR, Role
from sql.authorization import Authorized, Demand, Followed, P, Plan, authorize

if TYPE_CHECKING:
    from gateway.session import Session


class Access:
    """Of one session. `identity`: the id of the role that signed in."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.identity = OPERATOR.id
        self._known: tuple[Catalog | None, str] = (None, "")
        self._role = OPERATOR
        self._asked: tuple[Catalog | None, Role | None] = (None, None)
        self._answers: dict[tuple[Demand, ...], bool] = {}  # of `may`, for what was asked

    @property
    def role(self) -> Role:
        """As the catalog has it now."""
        catalog, wanted = self._session.serving.catalog, self._session.settings["role"]
        if self._known[0] is not catalog or self._known[1] != wanted:
            self._role = self.find(wanted)
            self._known = (catalog, wanted)
        return self._role

    def find(self, wanted: str) -> Role:
        """The role that SET ROLE is to name; "none" is that of the sign-in. Raises 22023, 42501."""
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
        """The plan, for what evaluates it. Raises 42501."""
        return authorize(plan, self.role, self._session.catalog)

    def may(self, plan: Plan) -> bool:
        """Whether `authorize` allows it; remembered until the catalog or the role changes. Asked before ready bytes are given."""
        try:
            asked = self._session.catalog, self.role
            if asked[0] is not self._asked[0] or asked[1] is not self._asked[1]:
                self._asked, self._answers = asked, {}
            known = self._answers.get(plan.demands)
            if known is None:
                known = self._answers[plan.demands] = self._allows(plan)
            return known
        except TailgateError:
            return False  # the role is gone: the statement itself gets that error

    def _allows(self, plan: Plan) -> bool:
        try:
            self.authorize(plan)
        except TailgateError:
            return False
        return True

    def may_read(self, item: Item) -> bool:
        """Whether the role may see what is in a relation, its errors included."""
        return self.may(Followed(item))

    # --- ownership

    def owns(self, item: Item) -> bool:
        """Whether it belongs to the role, or to a role that it is a member of."""
        return self.role.superuser or item.owner in self._session.serving.catalog.acting(self.role.id)

    def check_superuser(self, what: str) -> None:
        if not self.role.superuser:
            raise InsufficientPrivilege(f"permission denied to {what}")
