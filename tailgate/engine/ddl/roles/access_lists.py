"""Access lists under GRANT and REVOKE.

A role may grant a privilege that it holds with GRANT OPTION. If it loses the option, the privileges that it has granted depend on
nothing: REVOKE … CASCADE revokes them, too, and RESTRICT is an error. The owner of an object always has all options.

Source: PostgreSQL 15, src/backend/utils/adt/acl.c (aclupdate, recursive_revoke, check_circularity, select_best_grantor).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import PUBLIC_ID, AccessList, Granted, Role
from tailgate.lake.errors import DependentObjectsStillExist, InvalidGrantOperation


@dataclass(frozen=True, slots=True)
class Granting:
    """Changes access lists of an object with this owner. `catalog`: has the memberships."""

    owner: int
    catalog: Catalog

    def changed(
        self,
        entries: AccessList,
        grantees: Iterable[int],
        grantor: int,
        privileges: frozenset[str],
        *,
        grants: bool,
        option: bool,
        cascade: bool = True,
    ) -> AccessList:
        """Returns the list after GRANT or REVOKE. `option`: WITH GRANT OPTION, or GRANT OPTION FOR. Raises 0LP01 and 2BP01."""
        nothing = frozenset[str]()
        for grantee in grantees:
            if grants:
                entries = self.granted(entries, Granted(grantee, grantor, privileges, privileges if option else nothing))
            else:
                removed = Granted(grantee, grantor, nothing if option else privileges, privileges)
                entries = self.revoked(entries, removed, cascade=cascade)
        return entries

    def granted(self, entries: AccessList, added: Granted) -> AccessList:
        """Returns the list with more privileges. Raises 0LP01 for options that the grantor has from the grantee."""
        if added.options and added.grantor != self.owner:
            self._check_grantor(entries, added)
        old = _entry(entries, added)
        return _with(entries, replace(old, privileges=old.privileges | added.privileges, options=old.options | added.options))

    def revoked(self, entries: AccessList, removed: Granted, *, cascade: bool) -> AccessList:
        """Returns the list with fewer privileges. Without `cascade`, raises 2BP01 if the grantee has granted them to others."""
        old = _entry(entries, removed)
        new = replace(old, privileges=old.privileges - removed.privileges, options=old.options - removed.options)
        remaining = _with(entries, new)
        return self._without_dependent(remaining, old.grantee, old.options - new.options, cascade=cascade)

    def grantor(self, role: Role, privileges: frozenset[str], entries: AccessList) -> tuple[int, frozenset[str]]:
        """Returns the role that grants on behalf of `role`, and which of the privileges it may grant.

        It is the owner, or the role itself or one that it is a member of: the first one with all options, else the one with most.
        """
        if role.superuser or role.id == self.owner:
            return self.owner, privileges
        best: tuple[int, frozenset[str]] = role.id, frozenset()
        for id in sorted(self.catalog.acting(role.id), key=lambda id: (id != role.id, id)):
            options = frozenset[str]().union(*(entry.options for entry in entries if entry.grantee == id))
            options = privileges if id == self.owner else privileges & options
            if options == privileges:
                return id, options
            if len(options) > len(best[1]):
                best = id, options
        return best

    def _options(self, entries: AccessList, role: int) -> frozenset[str] | None:
        """Returns the privileges that a role may grant; None for all."""
        acting = self.catalog.acting(role)
        if self.owner in acting or self.catalog.all_roles()[role].superuser:
            return None
        return frozenset[str]().union(*(entry.options for entry in entries if entry.grantee in acting))

    def _without_dependent(self, entries: AccessList, role: int, lost: frozenset[str], *, cascade: bool) -> AccessList:
        """Returns the list without the privileges that a role has granted and may not grant any more. Raises 2BP01."""
        if not lost or role in (PUBLIC_ID, self.owner) or (options := self._options(entries, role)) is None:
            return entries
        lost -= options
        while (dependent := next((e for e in entries if e.grantor == role and e.privileges & lost), None)) is not None:
            if not cascade:
                raise DependentObjectsStillExist("dependent privileges exist", hint="Use CASCADE to revoke them too.")
            entries = self.revoked(entries, replace(dependent, privileges=lost, options=lost), cascade=True)
        return entries

    def _check_grantor(self, entries: AccessList, added: Granted) -> None:
        """Raises 0LP01 if the grantor would have its options from the grantee alone."""
        while (held := next((e for e in entries if e.grantee == added.grantee and e.options), None)) is not None:
            entries = self.revoked(entries, replace(held, privileges=frozenset()), cascade=True)
        options = self._options(entries, added.grantor)
        if options is not None and not added.options <= options:
            raise InvalidGrantOperation("grant options cannot be granted back to your own grantor")


def _entry(entries: AccessList, like: Granted) -> Granted:
    """Returns the entry with the same grantee and grantor."""
    same = (entry for entry in entries if (entry.grantee, entry.grantor) == (like.grantee, like.grantor))
    return next(same, Granted(like.grantee, like.grantor, frozenset()))


def _with(entries: AccessList, new: Granted) -> AccessList:
    """Returns the list with an entry in the place of the one with the same roles, or at its end. Without privileges, it is removed."""
    replaced = {(entry.grantee, entry.grantor): entry for entry in entries} | {(new.grantee, new.grantor): new}
    return tuple(entry for entry in replaced.values() if entry.privileges)
