"""A role cannot use up what other roles need."""

from __future__ import annotations

import pytest
from psycopg import errors

from tailgate.gateway.execute import catalog_changes
from tests.authorization.world import World

SUBSCRIPTIONS = 3  # limit in this test


def test_subscriptions_of_a_role(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each subscription prevents the removal of log entries, so a role can own only some."""
    monkeypatch.setattr(catalog_changes, "SUBSCRIPTIONS_EACH", SUBSCRIPTIONS)
    world.sql("low", "CREATE TABLE lo.t (n int)")
    world.sql("low", "GRANT USAGE, CREATE ON SCHEMA lo TO helper", "GRANT SELECT ON lo.t TO helper")
    with world.connect("low") as low:
        for number in range(SUBSCRIPTIONS):
            low.execute(f"CREATE SUBSCRIPTION lo.s{number} FROM lo.t".encode())
        with pytest.raises(errors.ConfigurationLimitExceeded) as raised:
            low.execute("CREATE SUBSCRIPTION lo.more FROM lo.t")
        assert raised.value.diag.message_detail == f"A role can own {SUBSCRIPTIONS}."
        world.sql("helper", "CREATE SUBSCRIPTION lo.another FROM lo.t")  # of another role
        world.sql("tailgate", *(f"CREATE SUBSCRIPTION lo.u{number} FROM lo.t" for number in range(SUBSCRIPTIONS + 1)))
        low.execute("DROP SUBSCRIPTION lo.s0")
        low.execute("CREATE SUBSCRIPTION lo.more FROM lo.t")
