"""The views that TERMINATE, PAUSE and RESUME of persistent queries change."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tailgate.engine.ddl.ksqldb import controlled, paused, query_view, stopped
from tailgate.engine.ddl.view import create_view
from tailgate.engine.plan.views.catalog_graph import BACKFILL, backfill_inputs, compile_catalog
from tailgate.engine.plan.views.nodes import with_new_nodes
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.backfill.preparation import replacements_of
from tailgate.engine.runtime.control.control import NOBODY
from tailgate.engine.runtime.control.fill_waits import await_replacements, cancel
from tailgate.lake.catalog import Catalog, Change, MaterializedView, ksqldb_of
from tailgate.lake.catalog.formats import Failure
from tailgate.lake.catalog.roles import OPERATOR_ID, Role
from tailgate.lake.errors import DependentObjectsStillExist, FeatureNotSupported, ObjectNotInPrerequisiteState, UndefinedObject
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements import ControlQueries, CreateView, Explain, QueryId, parse
from tests.engine.ddl.ksqldb_items import AVERAGES, HIGH, READINGS, declared, derived

ABOVE = "CREATE TABLE n AS SELECT area, count(*) AS n FROM high GROUP BY area EMIT CHANGES"


def queries() -> tuple[MaterializedView, MaterializedView, MaterializedView, Catalog]:
    """Returns the views of three queries, the third above the second, and the catalog with them."""
    averages, _, catalog = derived(AVERAGES, declared(READINGS))
    high, _, catalog = derived(HIGH, catalog)
    above, _, catalog = derived(ABOVE, catalog)
    return averages, high, above, catalog


def views_of(change: Change) -> list[MaterializedView]:
    return [item for item in change.put if isinstance(item, MaterializedView)]


def controls(text: str) -> ControlQueries:
    statement = parse(text)
    assert isinstance(statement, ControlQueries)
    return statement


def names(text: str, catalog: Catalog, role: int = OPERATOR_ID) -> list[str]:
    return [view.name for view in controlled(controls(text), role, catalog.with_resolution(resolve(text, catalog, catalog)))]


def test_a_query_is_named_by_its_id() -> None:
    _, _, above, catalog = queries()
    assert names("PAUSE CTAS_AVG_READINGS_0", catalog) == ["avg_readings"]
    assert names("terminate csas_high_1;", catalog) == ["high"]
    assert names("RESUME `CTAS_N_2`", catalog) == ["n"]
    with pytest.raises(UndefinedObject, match="Unknown queryId: CTAS_N_0"):
        names("PAUSE CTAS_N_0", catalog)
    with pytest.raises(UndefinedObject):  # a table does not stand for its query
        names("PAUSE n", catalog)
    with pytest.raises(UndefinedObject):
        names("PAUSE `ctas_n_2`", catalog)
    assert above.name == "n"


def test_explain_names_a_query_too() -> None:
    _, _, _, catalog = queries()
    text = "EXPLAIN CSAS_HIGH_1;"
    statement = parse(text)
    assert isinstance(statement, Explain)
    assert statement.target == QueryId("CSAS_HIGH_1")
    assert query_view("CSAS_HIGH_1", catalog.with_resolution(resolve(text, catalog, catalog))).name == "high"


def test_all_are_the_queries_of_the_role() -> None:
    averages, _, _, catalog = queries()
    catalog = catalog.apply(Change(put=(replace(averages, owner=7),), put_roles=(Role(7, "ann"), Role(8, "bob"))))
    assert names("PAUSE ALL", catalog) == ["avg_readings", "high", "n"]
    assert names("PAUSE ALL", catalog, 7) == ["avg_readings"]
    assert names("PAUSE ALL", catalog, 8) == []


def test_views_above_a_query_run_on_unless_they_share_operators() -> None:
    averages, high, above, catalog = queries()
    for ends in (False, True):
        assert [v.paused for v in views_of(stopped((high,), catalog, ends=ends))] == [True, False]
    of_both = catalog.apply(Change(put=(replace(above, nodes=(("digest", 1),)), replace(averages, nodes=(("digest", 1),)))))
    with pytest.raises(DependentObjectsStillExist, match="cannot terminate query CSAS_HIGH_1"):
        stopped((high,), of_both, ends=True)
    with pytest.raises(DependentObjectsStillExist, match="cannot pause query CSAS_HIGH_1") as error:
        stopped((high,), of_both, ends=False)
    assert error.value.detail == "materialized view n depends on materialized view high"
    assert [v.paused for v in views_of(stopped((averages, high, above), catalog, ends=False))] == [True, True, True]
    catalog = catalog.apply(stopped((above,), catalog, ends=False))
    assert views_of(stopped((high,), catalog, ends=True))[0].paused
    with pytest.raises(ObjectNotInPrerequisiteState, match="still being filled"):
        stopped((replace(averages, ready=False),), catalog, ends=False)


def test_a_query_that_joins_a_stream_is_terminated_only() -> None:
    catalog = declared("CREATE TABLE a (id VARCHAR PRIMARY KEY, x INT) WITH (kafka_topic = 'a', value_format = 'json')", declared(READINGS))
    join = "CREATE STREAM j AS SELECT r.sensor, x FROM readings r LEFT JOIN a ON r.sensor = a.id EMIT CHANGES"
    view, _, catalog = derived(join, catalog)
    with pytest.raises(FeatureNotSupported, match="PAUSE of query CSAS_J_0, which joins a stream"):
        stopped((view,), catalog, ends=False)
    assert views_of(stopped((view,), catalog, ends=True))[0].paused
    high, _, catalog = derived(HIGH, catalog)
    join = join.replace("readings", "high").replace("STREAM j", "STREAM k")
    with pytest.raises(FeatureNotSupported, match="a join of a stream above query CSAS_HIGH_1, which is paused"):
        derived(join, catalog.apply(stopped((high,), catalog, ends=False)))
    assert derived(join, catalog.apply(stopped((high,), catalog, ends=True)))[0].name == "k"
    _, _, catalog = derived(join, catalog)
    with pytest.raises(FeatureNotSupported, match='PAUSE of query CSAS_HIGH_1, which is below "k", which joins a stream'):
        stopped((high,), catalog, ends=False)


def test_a_terminated_query_has_no_id_and_keeps_its_number() -> None:
    averages, _, _, catalog = queries()
    catalog = catalog.apply(stopped((averages,), catalog, ends=True))
    properties = ksqldb_of(catalog.relation("avg_readings"))
    assert properties is not None
    assert (properties.query, properties.number, properties.topic) == ("", 0, "AVG_READINGS")
    with pytest.raises(UndefinedObject):
        names("RESUME CTAS_AVG_READINGS_0", catalog)


def test_a_query_continues_if_its_inputs_run() -> None:
    _, high, above, catalog = queries()
    assert paused((high, above), catalog) == ()
    high, above = views_of(stopped((high, above), catalog, ends=False))
    catalog = catalog.apply(Change(put=(high, above)))
    assert paused((high, above), catalog) == (high, above)
    assert paused((above,), catalog) == (above,)  # from the rows that the paused query has
    running = catalog.apply(Change(put=(replace(above, paused=False, ready=False),)))
    with pytest.raises(ObjectNotInPrerequisiteState, match='"n" is still being filled'):
        paused((high,), running)
    ended = catalog.apply(stopped((high,), catalog, ends=True))
    assert paused((above,), ended) == (above,)
    failed = catalog.apply(Change(put=(replace(high, paused=False, failed=Failure(1, "it has failed")),)))
    with pytest.raises(ObjectNotInPrerequisiteState, match="it has failed"):
        paused((above,), failed)


def test_the_replacement_of_a_view_above_a_resumed_query_is_not_canceled() -> None:
    """The view would stay as it was when the query was paused."""
    _, _, above, catalog = queries()
    view = replace(above, paused=True, ksqldb=None)  # as of PostgreSQL's dialect
    catalog = catalog.apply(Change(put=(view,)))
    catalog = catalog.apply(Change(put=tuple(replacements_of([view], catalog))))
    installation = cast(Installation, SimpleNamespace(engine=SimpleNamespace(catalog=catalog)))
    with pytest.raises(ObjectNotInPrerequisiteState, match='filling materialized view "n" cannot be canceled'):
        cancel(installation, view)


def test_a_view_may_be_created_over_a_paused_query() -> None:
    averages, high, above, catalog = queries()
    catalog = catalog.apply(stopped((averages, high, above), catalog, ends=False))
    text = "CREATE MATERIALIZED VIEW m WITH (on_error = 'skip') AS SELECT count(*) FROM avg_readings"
    statement = parse(text)
    assert isinstance(statement, CreateView)
    view = create_view(statement, text, catalog)
    assert isinstance(view, MaterializedView)
    stream = Streams(catalog.apply(Change(put=(view,))))(view)
    after = catalog.apply(Change(put=(with_new_nodes(replace(view, ready=False), catalog, stream),)))
    assert backfill_inputs(view, stream)[0].item == averages.id
    assert [source.channel[: len(BACKFILL)] for source in compile_catalog(after, Streams(after)).sources] == [
        BACKFILL
    ]  # no tick changes it


@pytest.mark.parametrize(
    "select",
    [
        "area, wheel_id, TRANSFORM(area, {0} => {0} + 1) AS t FROM s GROUP BY area, wheel_id",
        "wheel_id, COLLECT_LIST(REDUCE(area, 0, (s, {0}) => s + {0} * 2)) AS t FROM s GROUP BY wheel_id",
        "wheel_id * 2 AS k, COLLECT_LIST(REDUCE(area, 0, (s, {0}) => s + {0} * 2)) AS t FROM s GROUP BY wheel_id * 2",
        "wheel_id, COLLECT_LIST(TRANSFORM(area, x => REDUCE(area, x, (s, {0}) => s + {0}))) AS t FROM s GROUP BY wheel_id",
    ],
)
def test_a_parameter_of_a_lambda_may_have_the_name_of_a_key(select: str) -> None:
    catalog = declared("CREATE STREAM s (area ARRAY<INT>, wheel_id INT) WITH (kafka_topic = 's', format = 'json')")
    query = f"CREATE TABLE t WITH (key_format = 'json') AS SELECT {select.replace('FROM', ', COUNT(*) AS c FROM')} EMIT CHANGES"
    (same, _, _), (other, _, _) = (derived(query.format(name), catalog) for name in ("wheel_id", "y"))
    assert same.query == other.query


def test_a_statement_does_not_wait_for_a_fill_that_has_failed() -> None:
    averages, _, above, catalog = queries()
    replacements = replacements_of([averages, above], catalog)
    engine = SimpleNamespace(catalog=catalog.apply(Change(put=tuple(replacements))), stopping=False)
    installation = cast(Installation, SimpleNamespace(engine=engine, failures={}, settled=threading.Condition()))
    waiting = threading.Thread(target=await_replacements, args=(installation, (averages, above), NOBODY), daemon=True)
    waiting.start()
    for number, replacement in enumerate(replacements):
        assert waiting.is_alive(), number
        with installation.settled:
            installation.failures[replacement.id] = ObjectNotInPrerequisiteState("the topic is gone")
            installation.settled.notify_all()
    waiting.join(30)
    assert not waiting.is_alive()
