"""Comparisons at the end of a run: views, tables, sinks, Delta tables and followers against recomputed rows.

topics ──DuckDB, read with Kafka's client──► rows of the view over topics
tables ──an ad-hoc SELECT on a gateway─────► rows of the views over tables, which Spark maintains
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from deltalake import DeltaTable

from tailgate.examples.shop.recompute import Topics, plain
from tailgate.lake.catalog.names import Name
from tailgate.lake.folder import Lake
from tailgate.lake.tables.stored_relations import COUNT
from tests.cdc.cases import difference
from tests.cdc.folding import Misfit, fold, spelt
from tests.lake.relations import table_path

ARRIVES_S = 300.0  # until the last write has arrived everywhere; seconds on an idle machine

Row = tuple[Any, ...]
Told = Callable[[str, "str | None"], None]


def eventually(look: Callable[[], str | None], watch: Callable[[], None], seconds: float = ARRIVES_S) -> str | None:
    """Repeats a check until it finds nothing wrong or the time is over. Returns its last result."""
    deadline = time.monotonic() + seconds
    while True:
        watch()
        try:
            wrong = look()
        except (psycopg.Error, OSError) as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong is None or time.monotonic() > deadline:
            return wrong
        time.sleep(0.5)


def rows(connection: psycopg.Connection[Any], text: str) -> Counter[Row]:
    return Counter(connection.execute(text).fetchall())  # type: ignore[call-overload]


def views(connection: psycopg.Connection[Any], at: int, queries: Mapping[str, str], report: Told) -> None:
    """Compares each view with its query, at the same time of the log.

    The query reads stored relations. The time replaces `mz_now()`.
    """
    for name, query in queries.items():
        query = query.replace("mz_now()", f"to_timestamp({at} / 1000.0)")  # outside a view, mz_now() is the wall clock
        theirs = rows(connection, f"{query} AS OF {at}")
        try:
            wrong = difference(rows(connection, f"SELECT * FROM {name} AS OF {at}"), theirs)
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            wrong = str(error)
        report(f"view {name} is its query: {theirs.total()} rows", wrong)


def view_over_topics(connection: psycopg.Connection[Any], topics: Topics, view: str, watch: Callable[[], None], report: Told) -> None:
    expected, messages = topics.view()

    def look() -> str | None:
        ours = Counter(plain(row) for row in connection.execute(f"SELECT * FROM {view}").fetchall())  # type: ignore[call-overload]
        return difference(ours, expected)

    report(f"view {view} is the recompute of {messages} messages: {len(expected)} rows", eventually(look, watch))


def sink(connection: psycopg.Connection[Any], topics: Topics, name: str, topic: str, envelope: str, relation: str, report: Told) -> None:
    """Checks that a sink's events fit each other and add up to the rows of its relation."""
    expected = Counter(spelt(row) for row in connection.execute(f"SELECT * FROM {relation}").fetchall())  # type: ignore[call-overload]
    events, deadline = 0, time.monotonic() + ARRIVES_S
    wrong: str | None = "nothing was read"
    while wrong and time.monotonic() < deadline:
        try:
            actual, events = fold(topics, topic, envelope)
            wrong = difference(actual, expected)
        except Misfit as misfit:
            wrong = str(misfit)
            break
        except KeyError:
            wrong = f"there is no topic {topic}"
        if wrong:
            time.sleep(1)
    report(f"sink {name}: {events} events fold to {relation}", wrong)


def delta(connection: psycopg.Connection[Any], data: Path, relation: str, watch: Callable[[], None], report: Told) -> None:
    """Compares the rows of a relation's Delta table, as any Delta reader sees them."""
    lake = Lake(data)
    schema, _, name = relation.rpartition(".")
    item = lake.catalog().relation(Name(name, schema or None))

    def look() -> str | None:
        table = DeltaTable(str(table_path(lake, item.id))).to_pyarrow_table()
        actual: Counter[Row] = Counter()
        for row in table.to_pylist():
            copies = row.pop(COUNT, 1)
            actual[spelt(row.values())] += copies
        expected = Counter(spelt(row) for row in connection.execute(f"SELECT * FROM {relation}").fetchall())  # type: ignore[call-overload]
        return difference(actual, expected)

    report(f"the Delta table of {relation} has its rows", eventually(look, watch, 60.0))


def status(connection: psycopg.Connection[Any], report: Told) -> None:
    """Checks that sources, sinks and views run, and that no source has a dead letter."""
    for kind, good in (("sources", "running"), ("sinks", "running"), ("materialized_views", "running")):
        failing = connection.execute(f"SELECT name, status, error FROM tailgate.{kind} WHERE status <> '{good}'").fetchall()  # type: ignore[call-overload]
        report(f"all {kind.replace('_', ' ')} are running", "; ".join(map(str, failing)) or None)
    letters = connection.execute("SELECT name, dead_letters FROM tailgate.sources WHERE dead_letters > 0").fetchall()
    report("no record became a dead letter", "; ".join(map(str, letters)) or None)
