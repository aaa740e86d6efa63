"""Views of earlier versions, which read numerics without a declared precision with 16 digits after the decimal point."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.ddl import create_view
from tailgate.lake import sortable
from tailgate.lake.catalog import MaterializedView
from tailgate.sql.numeric_types import EXACT
from tests.engine.runtime.inside import Inside

pytestmark = pytest.mark.spark

QUERY = "SELECT id, a, a * 2 AS b FROM n"


def view(engine: Inside, name: str) -> MaterializedView:
    item = engine.engine.catalog.relation(name)
    assert isinstance(item, MaterializedView)
    return item


def test_they_keep_their_digits_and_their_state(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Inside(session, tmp_path / "lake")
    engine.execute("CREATE TABLE n (id int PRIMARY KEY, a numeric)")
    engine.insert("n", (1, sortable.stored(Decimal("1.10"))))
    with monkeypatch.context() as earlier:
        earlier.setattr("tailgate.engine.ddl.create_view", partial(create_view, numeric_rules=EXACT))
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        engine.execute("CREATE MATERIALIZED VIEW s AS SELECT sum(a) AS a FROM n")
    created = view(engine, "v"), view(engine, "s")
    engine.end()
    engine = Inside(session, tmp_path / "lake")
    assert (view(engine, "v"), view(engine, "s")) == created  # nothing is filled again
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT id, a::text AS a, (a * 2)::text AS b FROM n")
    engine.execute("CREATE MATERIALIZED VIEW j AS SELECT w.a, v.b FROM v JOIN w ON v.a = w.a::numeric")
    engine.insert("n", (2, sortable.stored(Decimal("2.500"))))
    assert engine.rows("v") == {(1, Decimal("1.1"), Decimal("2.2")): 1, (2, Decimal("2.5"), Decimal(5)): 1}
    assert engine.rows("s") == {(Decimal("3.6"),): 1}
    assert engine.rows("w") == {(1, "1.10", "2.20"): 1, (2, "2.500", "5.000"): 1}
    assert engine.rows("j") == {("1.10", Decimal("2.2")): 1, ("2.500", Decimal(5)): 1}
    engine.execute("CREATE OR REPLACE MATERIALIZED VIEW s AS SELECT sum(a) AS a, count(*) AS n FROM n")
    replaced = view(engine, "s")
    assert replaced.columns[:1] == created[1].columns
    assert replaced.numeric_rules == EXACT
    engine.end()
