"""The current role of a session: that of the sign-in, of SET SESSION AUTHORIZATION, or of SET ROLE.

sign-in ──► SET SESSION AUTHORIZATION, if the sign-in is a superuser's ──► SET ROLE, to a role that this one is a member of
"""

from __future__ import annotations

from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.client import Client
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import OPERATOR, Role
from tailgate.lake.errors import InsufficientPrivilege, InvalidAuthorizationSpecification, InvalidParameterValue


class CurrentRole:
    """The current role of one session, from the newest catalog."""

    def __init__(self, serving: Serving, client: Client, settings: Settings) -> None:
        self._serving, self._client, self._settings = serving, client, settings
        self._key: tuple[Catalog | None, str, str] = (None, "", "")
        self._role = OPERATOR

    def get(self) -> Role:
        """Returns the role. Raises 22023, 28000 or 42501 if it can no longer be used."""
        key = self._serving.progress.catalog, self._settings["session_authorization"], self._settings["role"]
        if self._key[0] is not key[0] or self._key[1:] != key[1:]:
            self._role = self.find(self._settings["role"])
            self._key = key
        return self._role

    def of_session(self) -> Role:
        """Returns the role without that of SET ROLE. Raises 22023, 28000 or 42501 if it can no longer be used."""
        return self._find_session(self._settings["session_authorization"])

    def check(self, setting: str, name: str) -> None:
        """Raises 22023, 28000 or 42501 for a role that SET ROLE or SET SESSION AUTHORIZATION may not set."""
        if setting == "role":
            self.find(name)
        else:
            self._find_session(name)

    def find(self, name: str) -> Role:
        """Returns the role for SET ROLE; "none" is that of the session. Raises 22023, 28000 or 42501."""
        catalog = self._serving.progress.catalog
        own = self._find_session(self._settings["session_authorization"])
        if name in ("none", "", own.name):
            return own
        if not catalog.has_roles:
            return OPERATOR
        role = catalog.find_role(name)
        if role is None:
            raise InvalidParameterValue(f'role "{name}" does not exist')
        if not own.superuser and role.id not in catalog.acting(own.id):
            raise InsufficientPrivilege(f'permission denied to set role "{name}"')
        return role

    def _find_session(self, name: str) -> Role:
        """Returns the role for SET SESSION AUTHORIZATION; "" is that of the sign-in. Raises 22023, 28000 or 42501."""
        catalog = self._serving.progress.catalog
        signed_in = catalog.all_roles().get(self._client.role)
        if signed_in is None:
            raise InvalidAuthorizationSpecification(f'role "{self._client.user}" does not exist')
        if name in ("", self._client.user):
            return signed_in
        role = catalog.find_role(name)
        if role is None:
            raise InvalidParameterValue(f'role "{name}" does not exist')
        if not signed_in.superuser and role.id != signed_in.id:
            raise InsufficientPrivilege("permission denied to set session authorization")
        return role
