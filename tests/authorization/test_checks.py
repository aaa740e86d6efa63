"""Tests that a missing check is noticed.

Each test disables one check. Then the random attack finds a leak or a change (ATTACKED), or the test
of what happens after an owner has lost a privilege fails (LATER): an attacker cannot define an object
without the privilege, so only a later REVOKE makes the check of each read necessary.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine import ddl
from tailgate.engine.ddl.roles.access_lists import Granting
from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.execute import catalog_changes as gateway_ddl
from tailgate.gateway.execute import subscriptions, time_expressions
from tailgate.gateway.execute.temporary import relations as temporary_relations
from tailgate.gateway.http import bound_endpoints
from tailgate.gateway.security import ownership
from tailgate.gateway.serving.prepared import scans
from tailgate.gateway.session import access, registry
from tailgate.gateway.session import roles as current
from tailgate.lake import errors
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import Role
from tailgate.sql import authorization
from tailgate.sql.authorization import Followed, shared
from tailgate.sql.bind import bind_query
from tailgate.sql.binder.queries import views as view_plans
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.statements import Select, parse
from tailgate.sql.statements.needs import BeRole
from tests.authorization import test_reading
from tests.authorization.attack import Attack, Leak
from tests.authorization.grammar import Grammar
from tests.authorization.world import World

STATEMENTS_MAX = 20_000  # as many as the noninterference test sends; then a disabled check counts as undetected
QUERIES, BOUND_MIN = 500, 0.3  # random queries, and the share of them that must be valid
Patch = pytest.MonkeyPatch


def without_plans(patch: Patch) -> None:
    """Uses no plans of views that were bound with all checks, and leaves none that were bound without one."""
    patch.setattr(view_plans, "_views", DefinitionCache(view_plans.VIEWS_MAX))


def reads(patch: Patch) -> None:
    """Disables the check of plans."""
    patch.setattr(authorization, "_check", lambda *_: None)


def columns(patch: Patch) -> None:
    """Takes a privilege on any column for the privilege on each column."""
    may = Catalog.may

    def any_column(self: Catalog, role: Role, privilege: str, object: int, columns: Collection[int] | None = None) -> bool:
        return may(self, role, privilege, object, None if columns is None else ())

    patch.setattr(Catalog, "may", any_column)


def views(patch: Patch) -> None:
    """Disables the check of the relations that views read."""
    without_plans(patch)
    patch.setattr(Names, "take_over", lambda self, view: self.levels.append(view.levels))


def functions(patch: Patch) -> None:
    """Checks the relations that a function reads for its caller only."""
    without_plans(patch)
    within = Names.within
    patch.setattr(Names, "within", lambda self, function: replace(within(self, function), readers=self.readers))


def callers(patch: Patch) -> None:
    """Checks the relations that a function reads for its owner only."""
    without_plans(patch)
    within = Names.within
    patch.setattr(Names, "within", lambda self, function: replace(within(self, function), readers=(function.id,)))


def definitions(patch: Patch) -> None:
    """Disables the check of definitions; later reads are still checked."""
    patch.setattr(ddl, "check_definitions", lambda *_: None)


def changes(patch: Patch) -> None:
    """Disables the check that changes need ownership."""
    patch.setattr(gateway_ddl, "check_change", lambda *_: None)


def grantors(patch: Patch) -> None:
    """Disables the check of GRANT OPTION and of the ownership that GRANT needs."""
    patch.setattr(Granting, "grantor", lambda granting, role, privileges, entries: (granting.owner, privileges))


def owners(patch: Patch) -> None:
    """Disables the check that replacements need ownership."""
    patch.setattr(ownership._Check, "_target", lambda *_: None)
    patch.setattr(ownership._Check, "_functions", lambda *_: ())


def names(patch: Patch) -> None:
    """Checks the names that the session sees, but lets the engine resolve the statement without temporary views.

    Also disables `temporary_relations._find`, which refuses most statements that name a temporary view before
    their names are resolved: it gives them PostgreSQL's error messages.
    """
    patch.setattr(temporary_relations, "_find", lambda *_: None)
    send = gateway_ddl.send

    async def late(session: Any, bound: Any, tell: Any = None) -> Any:
        with patch.context() as inner:
            path = tuple(p for p in session.catalog.path if not p.startswith("pg_temp"))
            resolve, check = gateway_ddl.resolve, gateway_ddl.check_change
            inner.setattr(gateway_ddl, "resolve", lambda text, catalog, base: resolve(text, base.along(path), base))
            inner.setattr(
                gateway_ddl, "check_change", lambda statement, role, catalog, database: check(statement, role, session.catalog, database)
            )
            return await send(session, bound, tell)

    patch.setattr(gateway_ddl, "send", late)


def arguments(patch: Patch) -> None:
    """Evaluates arguments of EXECUTE and times without any check of privileges."""

    async def row(session: Any, text: Any) -> list[Any]:
        plan = shared(session.serving.binder.prepare(text, (), session.naming.seen))
        columns = (await session.serving.queries.run(plan)).columns
        return [(column[0].as_py(), field.type) for column, field in zip(columns, plan.plan.columns, strict=True)]

    patch.setattr(time_expressions, "arguments", row)


def ready_bytes(patch: Patch) -> None:
    """Returns cached results to every role."""
    patch.setattr(access.Access, "may", lambda *_: True)


def status(patch: Patch) -> None:
    """Shows errors of views, sources and sinks to every role."""
    patch.setattr(access.Access, "may_see", lambda *_: True)


def verifiers(patch: Patch) -> None:
    """Shows the whole system catalog to every role."""
    patch.setattr(CatalogQuery, "demands", ())


def sessions(patch: Patch) -> None:
    """Shows the statements of all sessions to every role."""
    patch.setattr(registry.Sessions, "_may_see", lambda *_: True)


def roles(patch: Patch) -> None:
    """Allows SET ROLE to any role."""
    find = current.CurrentRole.find

    def found(self: Any, name: str) -> Any:
        with contextlib.suppress(errors.InsufficientPrivilege):
            return find(self, name)
        return self._serving.progress.catalog.find_role(name)

    patch.setattr(current.CurrentRole, "find", found)


def subscribers(patch: Patch) -> None:
    """Allows FETCH FROM SUBSCRIPTION to every role."""
    patch.setattr(subscriptions, "_authorized", lambda session, item: shared(Followed(session.serving.progress.catalog[item.depends[0]])))


def callers_of_endpoints(patch: Patch) -> None:
    """Lets every role call every endpoint."""
    patch.setattr(bound_endpoints.Call, "demands", ())


def tokens(patch: Patch) -> None:
    """Lets every role create tokens of every other role."""
    check = ownership._Check._need
    allows = lambda need: isinstance(need, BeRole) and "tokens" in need.action  # noqa: E731
    patch.setattr(ownership._Check, "_need", lambda self, need: None if allows(need) else check(self, need))


ATTACKED = [
    reads,
    columns,
    callers,
    definitions,
    changes,
    grantors,
    owners,
    names,
    arguments,
    ready_bytes,
    status,
    verifiers,
    sessions,
    roles,
    subscribers,
    callers_of_endpoints,
    tokens,
]
LATER = {
    views: test_reading.test_a_view_reads_with_its_owner_s_privileges,
    functions: test_reading.test_a_function_cannot_borrow_from_a_view_that_calls_it,
}


@pytest.mark.long
@pytest.mark.parametrize("broken", ATTACKED, ids=lambda f: f.__name__)
def test_the_attack_notices_a_removed_check(tmp_path: Path, seed: int, monkeypatch: Patch, broken: Callable[[Patch], None]) -> None:
    attack = Attack(tmp_path, seed)
    noticed: Exception | None = None
    try:
        broken(monkeypatch)
        attack.run(STATEMENTS_MAX)
    except (Leak, AssertionError) as error:
        noticed = error
    finally:
        monkeypatch.undo()
        attack.close()
    print(broken.__name__, sum(attack.kinds.values()), str(noticed)[:100])
    assert noticed is not None


@pytest.mark.parametrize("broken", LATER, ids=lambda f: f.__name__)
def test_a_removed_check_is_noticed_after_a_revoke(world: World, monkeypatch: Patch, broken: Callable[[Patch], None]) -> None:
    broken(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        LATER[broken](world)


def test_every_scanned_relation_is_demanded(tmp_path: Path, seed: int) -> None:
    """`authorize` checks the demands only, so a plan must demand a privilege on each relation that it scans."""
    attack = Attack(tmp_path, seed)
    grammar, bound = Grammar(random.Random(seed), "lo"), 0
    try:
        catalog = attack.world.lake.catalog()
        for _ in range(QUERIES):
            with contextlib.suppress(errors.TailgateError):
                statement = parse(grammar.query())
                assert isinstance(statement, Select)
                query = bind_query(statement.query, catalog)
                assert {scan.relation for scan in scans(query.plan)} <= {demand.item for demand in query.demands}
                bound += 1
    finally:
        attack.close()
    assert bound > QUERIES * BOUND_MIN
