"""The docs of sources and sinks: all statements are accepted, and all options documented."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tailgate.engine.ddl import create_connection, create_secret, create_sink, create_source, create_view, sink_view
from tailgate.engine.ddl.kafka.sink import OPTIONS
from tailgate.engine.ddl.kafka.source import IGNORED, LIMITS
from tailgate.lake.catalog import Catalog, Change, Table, ready
from tailgate.lake.catalog.secrets import Settings
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.sinks.settings import TOPIC_CONFIG, settings
from tailgate.sql.statements import CreateConnection, CreateSecret, CreateSink, CreateSource, CreateView, Statement, parse, split
from tests.engine.ddl.test_statements import ENVELOPE, KEY

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("sources.md", "sinks.md")


class AnySubject:
    """A registry that knows every subject."""

    def latest(self, url: str, subject: str, settings: Settings = ()) -> str | None:
        return json.dumps(KEY if subject.endswith("-key") else ENVELOPE)

    def by_id(self, url: str, id: int, settings: Settings = ()) -> str | None:
        return json.dumps(ENVELOPE)

    def protobuf(self, url: str, subject: str, settings: Settings = ()) -> tuple[str, ...] | None:
        return ('syntax = "proto3"; message Any { int64 id = 1; }',)


def statements(page: str) -> list[tuple[Statement, str]]:
    blocks = re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    return [(parse(s), s.text) for block in blocks for s in split(block)]


def relations() -> Catalog:
    """Returns a catalog with `totals`, a table with a key, and `seen`, an append-only view."""
    text = "CREATE SOURCE words FROM KAFKA BROKER 'kafka' TOPIC 'words' FORMAT TEXT"
    source = parse(text)
    assert isinstance(source, CreateSource)
    catalog = Catalog().apply(Change(put=create_source(source, text, Catalog(), AnySubject())))
    text = "CREATE MATERIALIZED VIEW seen AS SELECT text FROM words"
    view = parse(text)
    assert isinstance(view, CreateView)
    catalog = catalog.apply(Change(put=(ready(create_view(view, text, catalog)),)))
    columns = (Field("id", INT8, False), Field("name", TEXT))
    totals = Table(catalog.next_id, "totals", columns, key=(0,), stored=True)
    return connected(catalog.apply(Change(put=(totals,))))


def connected(catalog: Catalog) -> Catalog:
    """Adds the secrets and connections of sources.md."""
    for statement, text in statements("sources.md"):
        if isinstance(statement, CreateSecret):
            catalog = catalog.apply(Change(put=(create_secret(statement, text, catalog, lambda value, id: "sealed"),)))
        if isinstance(statement, CreateConnection):
            catalog = catalog.apply(Change(put=(create_connection(statement, text, catalog),)))
    return catalog


@pytest.mark.parametrize("page", PAGES)
def test_every_statement_of_the_page(page: str) -> None:
    page_statements = statements(page)
    assert len(page_statements) > 3
    catalog = connected(Catalog())
    transaction_sources = {
        s.transactions.source.name for s, _ in page_statements if isinstance(s, CreateSource) and s.transactions is not None
    }
    for statement, text in page_statements:
        if isinstance(statement, CreateSource):
            items = create_source(statement, text, catalog, AnySubject())
            if statement.name.name in transaction_sources:
                catalog = catalog.apply(Change(put=items))
        if isinstance(statement, CreateSink):
            catalog = relations()
            if (view := sink_view(statement, catalog)) is not None:
                catalog = catalog.apply(Change(put=(view,)))
            settings(replace(create_sink(statement, text, catalog, view), id=1))


def test_every_option_is_documented() -> None:
    sources = (DOCS / "sources.md").read_text()
    for name in (
        *IGNORED,
        *LIMITS,
        "decimal_handling_mode",
        "start_offset",
        "kafka_time_offset",
        "isolation_level",
        "confluent_wire_format",
    ):
        assert f"`{name}" in sources, name
    used = {name for statement, _ in statements("sinks.md") if isinstance(statement, CreateSink) for name, _ in statement.options}
    assert set(OPTIONS) - {"compression"} <= used
    assert set(TOPIC_CONFIG) <= set(OPTIONS)
