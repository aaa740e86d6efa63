"""The current role of a session: that of the sign-in, or of SET ROLE."""

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
        self._key: tuple[Catalog | None, str] = (None, "")
        self._role = OPERATOR

    def get(self) -> Role:
        """Returns the role. Raises 22023, 28000 or 42501 if it can no longer be used."""
        catalog, name = self._serving.progress.catalog, self._settings["role"]
        if self._key[0] is not catalog or self._key[1] != name:
            self._role = self.find(name)
            self._key = (catalog, name)
        return self._role

    def find(self, name: str) -> Role:
        """Returns the role for SET ROLE; "none" is that of the sign-in. Raises 22023, 28000 or 42501."""
        catalog = self._serving.progress.catalog
        signed_in = catalog.all_roles().get(self._client.role)
        if signed_in is None:
            raise InvalidAuthorizationSpecification(f'role "{self._client.user}" does not exist')
        if name in ("none", "", signed_in.name):
            return signed_in
        if not catalog.has_roles:
            return OPERATOR
        role = catalog.find_role(name)
        if role is None:
            raise InvalidParameterValue(f'role "{name}" does not exist')
        if not signed_in.superuser and role.id not in catalog.acting(signed_in.id):
            raise InsufficientPrivilege(f'permission denied to set role "{name}"')
        return role
