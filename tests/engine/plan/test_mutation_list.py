"""The list of mutations matches the current engine. The slow `test_mutations.py` applies them."""

from __future__ import annotations

import re

from tests.engine.plan.mutations import ALL, JAVA_SOURCES


def test_each_mutated_text_exists() -> None:
    for mutation in ALL:
        assert mutation.applied(mutation.source.read_text())


def test_every_operator_and_accumulator_has_mutations() -> None:
    kinds = re.compile(r"class \w+ extends (Operator|Join|Partitioned|Accumulator|Accumulator\.Keeping|Counts) \{")
    operators = {f.stem for f in JAVA_SOURCES.rglob("*.java") if kinds.search(f.read_text())}
    # the results of these depend on the order of records: their own tests in Java evaluate one record after the other
    # the law has no general numerics: test_general_numerics.py compares their aggregates with PostgreSQL
    # FirstTime has the time at which a group began: the tests of ksqldb's current time compare it
    # the result of HighWatermark depends on rows that have left: the tests of ksqldb's groups compare it
    assert operators - {"ArrivalJoin", "StreamOperator", "GeneralTotals", "FirstTime", "HighWatermark"} <= {m.file for m in ALL}


def test_rules_are_unique() -> None:
    assert len({str(m) for m in ALL}) == len(ALL)
