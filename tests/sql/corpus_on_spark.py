"""The corpus on Spark, with the templates of views: many expressions in a query. Also ksqlDB's expressions, and the function catalogue.

python -m tests.sql.corpus_on_spark DSN FOLDER SEED SHARE      prints differences from PostgreSQL, and fails if there are any

One expression in SHARE is evaluated, and one entry of the catalogue. Spark has its temporary files in FOLDER. VIEWS lists expressions that
only views refuse.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.tables.moments import numbers
from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.numeric_types import MAINTAINED
from tailgate.sql.render.spark import expression as render
from tests.sql.corpus import Expression, bound, corpus, expected, of_error, of_value
from tests.sql.ksqldb import function_examples as ksqldb
from tests.sql.on_spark import differences, session, sqlstate_of
from tests.sql.oracle import dated

# refused only in views
VIEWS = frozenset("text-016 uuid-007 tz-030 tz-031 tz-032 tz-033".split())
BATCH = 25  # expressions in one query


def scalar_of(expression: Expression) -> tuple[str, Type] | str:
    """Returns an expression's Spark SQL and type, or a verdict."""
    try:
        query = bound(expression, MAINTAINED)
        if not isinstance(query.plan, plan.Project) or not isinstance(query.plan.input, plan.Values):
            return "relation"
        return render(query.plan.expressions[0]), query.columns[0].type
    except FeatureNotSupported as error:
        return of_error(expression, error.sqlstate, error.message)
    except TailgateError as error:
        return of_error(expression, error.sqlstate, error.message)


def evaluate(spark: Any, batch: list[tuple[Expression, str, Type]]) -> dict[str, str]:
    """Returns verdicts by id. Halves the batch until the failing expression is alone."""
    columns = ", ".join(f"{text} AS x{i}" for i, (_, text, _) in enumerate(batch))
    try:
        table = spark.sql(f"SELECT {columns} FROM range(1)").toArrow()
    except Exception as error:  # noqa: BLE001  # any of Spark's errors
        if len(batch) == 1:
            return {batch[0][0].id: of_error(batch[0][0], sqlstate_of(error), str(error)[:200])}
        middle = len(batch) // 2
        return evaluate(spark, batch[:middle]) | evaluate(spark, batch[middle:])
    verdicts = {}
    for i, (expression, _, type) in enumerate(batch):
        column = table[f"x{i}"]
        (value,) = numbers(column if type.name == "interval" else column.cast(type.arrow)).to_pylist()
        verdicts[expression.id] = of_value(expression, dated(value, type), type)
    return verdicts


def verdicts_of(spark: Any, expressions: list[Expression]) -> dict[str, str]:
    verdicts: dict[str, str] = {}
    scalars: list[tuple[Expression, str, Type]] = []
    for expression in expressions:
        scalar = scalar_of(expression)
        if isinstance(scalar, str):
            verdicts[expression.id] = scalar
        else:
            scalars.append((expression, *scalar))
    values = [s for s in scalars if not s[0].sqlstate]
    for i in range(0, len(values), BATCH):
        verdicts |= evaluate(spark, values[i : i + BATCH])
    # an expected error would fail its whole batch
    for scalar_with_error in (s for s in scalars if s[0].sqlstate):
        verdicts |= evaluate(spark, [scalar_with_error])
    return verdicts


def ksqldb_differences(spark: Any) -> list[str]:
    """Returns the expressions of ksqlDB with another value than their line has."""
    bound_examples = [(example, *ksqldb.bound(example)) for example in ksqldb.examples()]
    columns = ", ".join(f"{scalar(query)} AS x{i}" for i, (_, query, _) in enumerate(bound_examples))
    table = spark.sql(f"SELECT {columns} FROM range(1)").toArrow()
    lines = []
    for i, (example, query, type) in enumerate(bound_examples):
        result = ksqldb.shown(table[f"x{i}"].cast(query.columns[0].type.arrow).to_pylist()[0], type)
        if result != example.result:
            lines.append(f"{example.text}: {result}, not {example.result}")
    return lines


def scalar(query: plan.Query) -> str:
    """Returns the Spark SQL of the only expression of a query."""
    assert isinstance(query.plan, plan.Project)
    return render(query.plan.expressions[0])


def corpus_differences(spark: Any, seed: int, share: int) -> int:
    """Prints differences, and returns their number."""
    expressions = list(corpus())
    sample = random.Random(seed).sample(expressions, len(expressions) // share)
    by_id = {e.id: e for e in sample}
    verdicts = verdicts_of(spark, sample)
    exceptions = expected()
    wrong = 0
    for id, verdict in sorted(verdicts.items()):
        ignored = verdict == "relation" or (verdict == "refused" and id in VIEWS) or id in exceptions
        if verdict != "same" and not ignored:
            e = by_id[id]
            print(f"{id}\t{e.sql}\t{e.sqlstate or f'{e.value} {e.type}'}\t{verdict}")
            wrong += 1
    for line in ksqldb_differences(spark):
        print(line)
        wrong += 1
    print(dict(Counter(v.split()[0] for v in verdicts.values())), file=sys.stderr)
    return wrong


def main(dsn: str, folder: Path, seed: int, share: int) -> int:
    spark = session(folder)
    wrong = differences(spark, dsn, seed, share) + corpus_differences(spark, seed, share)
    spark.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])) > 0)
