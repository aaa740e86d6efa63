"""Writes docs/sql/ksqldb-functions.md from the functions and their examples: `python -m tests.sql.ksqldb.function_page`."""

from __future__ import annotations

import re
from pathlib import Path

from tailgate.sql.ksqldb.functions import FAMILIES, Function
from tests.sql.ksqldb.function_examples import Example, examples

FILE = Path(__file__).parents[3] / "docs" / "sql" / "ksqldb-functions.md"
HEAD = """# Functions of ksqlDB

This page is generated from the rows of `tailgate/sql/ksqldb/functions`. Tests compute the examples
on Spark, which maintains persistent queries, and on DuckDB. `LIST FUNCTIONS` and `DESCRIBE FUNCTION`
show the same rows.

- T is any type. Arguments are cast to wider types of numbers, and nothing else.
- The result for a NULL argument is NULL unless the description says otherwise. A function that fails is NULL, too.
- `UUID` and `RANDOM` have one value for each row, with GROUP BY one for each change of a group, and the same one when
  a query is evaluated again after a crash. They may be used outside of lambdas. A row
  of a declared stream is known by its record, another one by its values, and a change of a group by the key, the number
  of rows and ROWTIME: equal ones have the same value. The current time, `UNIX_TIMESTAMP()` and `UNIX_DATE()`, may be
  used over streams, but not with WINDOW SESSION. It is the time when a record, or the last one of a group, is
  processed. Pull queries of tables have the time of the answer.
- [ksqlDB's dialect](ksqldb.md) describes operators, casts, constructors and access to elements.
"""


def page() -> str:
    """Returns the text of the page."""
    out = [HEAD]
    by_name: dict[str, list[Example]] = {}
    for example in examples():
        for name in re.findall(r"([A-Z_0-9]+)\(", example.text):
            by_name.setdefault(name, []).append(example)
    for family, rows in FAMILIES.items():
        out += [f"\n## {family}\n", "| function | arguments and result | what it returns | example |", "|---|---|---|---|"]
        names = dict.fromkeys(row.name.partition(":")[0].upper() for row in rows)
        for name in sorted(names):
            variants = [row for row in rows if row.name.partition(":")[0].upper() == name]
            signatures = "; ".join(dict.fromkeys(map(_signature, variants)))
            out.append(f"| `{name}` | {signatures} | {variants[0].does} | {_example(name, by_name.get(name, []))} |")
    return "\n".join(out) + "\n"


def _signature(row: Function) -> str:
    arguments = f"unit, {row.signature}" if ":" in row.name else row.signature
    return f"({arguments}) → {row.returns}".replace("<", "&lt;").replace("VARCHAR(STRING)", "VARCHAR").replace("|", "\\|")


def _example(name: str, calls: list[Example]) -> str:
    """Returns the first example that begins with the function, or the first that calls it."""
    if not calls:
        return ""
    example = next((e for e in calls if e.text.startswith(f"{name}(")), calls[0])
    value = re.sub(r" \([^()]*(\([^()]*\))?[^()]*\)$", "", example.result)
    return f"`` {example.text} `` → `` {value or ' '} ``".replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(page())
