"""Tests of the changes that tables of mirrors get later."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailgate.gateway.mirrors import deferral
from tailgate.gateway.mirrors.deferral import CLOCK, Deferral

RELATION = 7
PART = pa.table({"c0": ["x" * 1_000, "y"], "__weight": [1, -1]})


@pytest.mark.parametrize(("limit", "most"), [("ENTRIES_MAX", 3), ("ROWS_MAX", 5), ("BYTES_MAX", PART.nbytes * 5 // 2)])
def test_many_changes_are_applied_with_their_tick(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thus no statement waits for more than that, and they do not fill the memory."""
    monkeypatch.setattr(deferral, limit, most)
    changes = Deferral()
    assert [changes.due({RELATION: [PART]}, ()) for _ in range(2)] == [{}, {}]
    due = changes.due({RELATION: [PART]}, ())
    assert {relation: len(parts) for relation, parts in due.items()} == {RELATION: 3, CLOCK: 0}
    changes.applied(due)
    assert changes.due({RELATION: [PART]}, ()) == {}


def test_the_clock_is_set_with_each_tick_while_statements_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement does not wait for the clock, even if the tables that it reads have not changed."""
    changes = Deferral()
    changes.begin((RELATION,))
    assert changes.due({}, ()) == {CLOCK: ()}
    changes.end((RELATION,))
    assert changes.due({}, ()) == {CLOCK: ()}
    monkeypatch.setattr(deferral, "EAGER_S", 0.0)
    assert changes.due({}, ()) == {}
    assert changes.are_behind
