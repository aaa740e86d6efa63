"""RETAIN HISTORY FOR in CREATE and ALTER sets how long past times of a relation are readable."""

from __future__ import annotations

from typing import Any

import pytest

from tailgate.engine.ddl import alter, create_source, create_table, create_view
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import AlterItem, CreateSource, CreateTable, CreateView, parse
from tests.engine.ddl.test_statements import KAFKA, REGISTRY

HOUR_MS = 3_600_000


def after(*texts: str) -> Catalog:
    """Returns the catalog after these statements."""
    catalog = Catalog()
    for text in texts:
        statement: Any = parse(text)
        match statement:
            case CreateTable():
                table, others = create_table(statement, text, catalog)
                change = Change(put=(table, *others))
            case CreateView():
                change = Change(put=(create_view(statement, text, catalog),))
            case CreateSource():
                change = Change(put=create_source(statement, text, catalog, REGISTRY))
            case AlterItem():
                change = alter(statement, catalog)[0]
        catalog = catalog.apply(change)
    return catalog


def retained(catalog: Catalog, name: str) -> int | None:
    return next(i for i in catalog.items.values() if i.name == name).retain_history_ms or None


def test_every_stored_relation_has_the_option() -> None:
    catalog = after(
        "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '2 hours')",
        "CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1 day 30 minutes') AS SELECT k FROM t",
        f"CREATE SOURCE s {KAFKA} WITH (RETAIN HISTORY FOR '1 month') FORMAT TEXT ENVELOPE UPSERT",
        "CREATE TABLE u (k int8)",
    )
    assert [retained(catalog, name) for name in "tvsu"] == [2 * HOUR_MS, 24 * HOUR_MS + HOUR_MS // 2, 30 * 24 * HOUR_MS, None]


def test_alter_sets_and_resets_it() -> None:
    table = "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '2 hours')"
    assert retained(after(table, "ALTER TABLE t SET (RETAIN HISTORY FOR '3 hours')"), "t") == 3 * HOUR_MS
    assert retained(after(table, "ALTER TABLE t RESET (RETAIN HISTORY)"), "t") is None


SOURCE = f"CREATE SOURCE s {KAFKA} FORMAT TEXT ENVELOPE UPSERT"
TEXTS = [
    ("CREATE TABLE t (k int8)", "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '3 hours')"),
    ("CREATE TABLE t (k int8) WITHOUT OIDS", "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '3 hours') WITHOUT OIDS"),
    ("CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '2 hours')", "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '3 hours')"),
    ("CREATE TABLE t (k int8) WITH (retain history for = '2 h')", "CREATE TABLE t (k int8) WITH (RETAIN HISTORY FOR '3 hours')"),
    ("CREATE MATERIALIZED VIEW t (a) AS SELECT 1", "CREATE MATERIALIZED VIEW t (a) WITH (RETAIN HISTORY FOR '3 hours') AS SELECT 1"),
    ("CREATE MATERIALIZED VIEW t AS SELECT 1", "CREATE MATERIALIZED VIEW t WITH (RETAIN HISTORY FOR '3 hours') AS SELECT 1"),
    (SOURCE.replace(" s ", " t "), SOURCE.replace(" s ", " t ") + " WITH (RETAIN HISTORY FOR '3 hours')"),
    (
        SOURCE.replace(" s ", " t ") + " WITH (start_offset = 3)",
        SOURCE.replace(" s ", " t ") + " WITH (RETAIN HISTORY FOR '3 hours', start_offset = 3)",
    ),
    (
        f"CREATE SOURCE t {KAFKA} WITH (start_offset = 3, RETAIN HISTORY FOR '1 h') FORMAT TEXT ENVELOPE UPSERT",
        f"CREATE SOURCE t {KAFKA} WITH (start_offset = 3, RETAIN HISTORY FOR '3 hours') FORMAT TEXT ENVELOPE UPSERT",
    ),
]


@pytest.mark.parametrize(("text", "changed"), TEXTS, ids=lambda text: text)
def test_the_statement_shows_altered_options(text: str, changed: str) -> None:
    """SHOW CREATE shows it, and the statement creates an item with the same options."""
    kind = {"TABLE": "TABLE", "MATERIALIZED": "MATERIALIZED VIEW", "SOURCE": "SOURCE"}[text.split()[1]]
    catalog = after(text, f"ALTER {kind} t SET (RETAIN HISTORY FOR '3 hours')")
    item = next(i for i in catalog.items.values() if i.name == "t")
    assert item.sql == changed
    assert retained(after(changed), "t") == retained(catalog, "t") == 3 * HOUR_MS
    again = after(text, f"ALTER {kind} t SET (RETAIN HISTORY FOR '3 hours')", f"ALTER {kind} t RESET (RETAIN HISTORY)")
    assert retained(again, "t") is None
    assert "retain" not in next(i.sql for i in again.items.values() if i.name == "t").lower()
    assert retained(after(next(i.sql for i in again.items.values() if i.name == "t")), "t") is None


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE TABLE u (k int8) WITH (RETAIN HISTORY FOR '0 s')", "22023", 'invalid RETAIN HISTORY FOR: "0 s"'),
        ("CREATE TABLE u (k int8) WITH (RETAIN HISTORY FOR '31 days')", "22023", 'invalid RETAIN HISTORY FOR: "31 days"'),
        ("CREATE TABLE u (k int8) WITH (RETAIN HISTORY FOR 'long')", "22007", "invalid input syntax for type interval"),
        ("CREATE TABLE u (k int8) WITH (RETAIN HISTORY FOR 5)", "22023", "RETAIN HISTORY FOR takes an interval"),
        ("CREATE TABLE u (k int8) WITH (RETAIN HISTORY TO '1 h')", "0A000", 'option "retain history to" of a table is not supported'),
        ("CREATE VIEW u WITH (RETAIN HISTORY FOR '1 h') AS SELECT k FROM t", "0A000", 'option "retain history for" of a view'),
        (f"CREATE SOURCE u {KAFKA} WITH (RETAIN HISTORY FOR '1 h') FORMAT TEXT", "0A000", "of a source that is not stored"),
        ("ALTER TABLE t SET (RETAIN HISTORY TO '1 h')", "0A000", 'option "retain history to" of a table is not supported'),
        ("ALTER TABLE t SET (fillfactor = 70, RETAIN HISTORY FOR '1 h')", "0A000", "RETAIN HISTORY together with storage parameters"),
        ("ALTER TABLE w SET (RETAIN HISTORY FOR '1 h')", "42809", '"w" is not stored'),
    ],
)
def test_other_lengths_and_relations_are_refused(text: str, sqlstate: str, message: str) -> None:
    before = ("CREATE TABLE t (k int8)", "CREATE VIEW w AS SELECT k FROM t")
    after(*before)
    with pytest.raises(TailgateError, match=message) as raised:
        after(*before, text)
    assert raised.value.sqlstate == sqlstate
