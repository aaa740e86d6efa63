"""The corpus on Spark, with the templates that views use; many expressions a query, and one by one where a query fails.

python -m tests.sql.corpus_on_spark JAR SEED SHARE      prints what is wrong, and fails if anything is; `share`: of how many one is tried

Views may refuse more than tests/sql/corpus.txt lists: those are in VIEWS.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

from lake.errors import FeatureNotSupported, TailgateError
from lake.types import Type
from sql import plan
from sql.spark import expression as spelled
from tests.sql.corpus import Expression, bound, corpus, expected, of_error, of_value
from tests.sql.on_spark import session, sqlstate_of

# refused in views only
VIEWS = frozenset("text-016 tz-030 tz-031 tz-032 tz-033".split())
TOGETHER = 25  # expressions in one query


def scalar_of(expression: Expression) -> tuple[str, Type] | str:
    """Spark SQL and the type; or a verdict."""
    try:
        query = bound(expression)
        if not isinstance(query.plan, plan.Project) or not isinstance(query.plan.input, plan.Values):
            return "relation"
        return spelled(query.plan.expressions[0]), query.columns[0].type
    except FeatureNotSupported as error:
        return of_error(expression, error.sqlstate, error.message)
    except TailgateError as error:
        return of_error(expression, error.sqlstate, error.message)


def ask(spark: Any, found: list[tuple[Expression, str, Type]]) -> dict[str, str]:
    shown = ", ".join(f"{text} AS x{i}" for i, (_, text, _) in enumerate(found))
    try:
        table = spark.sql(f"SELECT {shown} FROM range(1)").toArrow()
    except Exception as error:  # noqa: BLE001  # which of them it was, one by one
        if len(found) == 1:
            return {found[0][0].id: of_error(found[0][0], sqlstate_of(error), str(error)[:200])}
        middle = len(found) // 2
        return ask(spark, found[:middle]) | ask(spark, found[middle:])
    verdicts = {}
    for i, (expression, _, type) in enumerate(found):
        column = table[f"x{i}"]
        try:
            value = (column if type.name == "interval" else column.cast(type.arrow)).to_pylist()[0]
        except OverflowError:
            value = "beyond the year 9999 or before the year 1"
        verdicts[expression.id] = of_value(expression, value, type)
    return verdicts


def verdicts(spark: Any, chosen: list[Expression]) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting: list[tuple[Expression, str, Type]] = []
    for expression in chosen:
        made = scalar_of(expression)
        if isinstance(made, str):
            found[expression.id] = made
        else:
            waiting.append((expression, *made))
    # those that are to fail spoil a query each
    waiting.sort(key=lambda w: bool(w[0].sqlstate))
    good = [w for w in waiting if not w[0].sqlstate]
    for i in range(0, len(good), TOGETHER):
        found |= ask(spark, good[i : i + TOGETHER])
    for one in waiting[len(good) :]:
        found |= ask(spark, [one])
    return found


def main(jar: str, seed: int, share: int) -> int:
    every = list(corpus())
    spark = session(jar)
    chosen = random.Random(seed).sample(every, len(every) // share)
    by_id = {e.id: e for e in chosen}
    found = verdicts(spark, chosen)
    known = expected()
    wrong = 0
    for id, verdict in sorted(found.items()):
        ignored = verdict == "relation" or (verdict == "refused" and id in VIEWS) or id in known
        if verdict != "same" and not ignored:
            e = by_id[id]
            print(f"{id}\t{e.sql}\t{e.sqlstate or f'{e.value} {e.type}'}\t{verdict}")
            wrong += 1
    print(dict(Counter(v.split()[0] for v in found.values())), file=sys.stderr)
    spark.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])) > 0)
