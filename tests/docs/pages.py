"""Parses pages of docs whose examples are run. After each statement, comments show what psql prints.

    ```sql                                     ```kafka topic [key]
    SELECT id, who FROM large;                 1: {"id": 1}
    --  id | who                               1: null
    -- ----+-----                              ```
    --   3 | ann
    -- (1 row)                                 records to write to a topic, with keys if `key` is
    SHOW TABLES; -- Tailgate                   present; NULL is written as null
    …
    ```
`-- Tailgate` after a statement means that it is not run on PostgreSQL, because it exists only in
Tailgate or differs. A statement ends at a line that ends with a semicolon or psql's `\\gset`; psql's
`\\i file` is also a statement. Lines between `COPY … FROM STDIN;` and `\\.` are its data. In output, `…`
in a line matches any text, and a line with only `…` matches any lines. `^C` as the last line of output
means that the statement runs until it is cancelled. Without ORDER BY, rows may be in any order.

A block ```avro topic has records in Avro: the schema of their values, where the block is the topic's first one, and a value in each
line. A schema is registered, and its topic created, also without records.

A block ```debezium table has change events of a table of `tailgate/examples/shop`, one JSON object per line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
SQL = DOCS / "sql"
FENCE = re.compile(r"^```(\w+)?(.*)$")
END = re.compile(r"(?:;| \\gset|^\\i [\w.]+)( -- Tailgate)?$")
INTERRUPT = "^C"
ANYTHING = "…"


@dataclass(frozen=True, slots=True)
class Example:
    """A statement with its expected output.

    `data` has the lines of COPY FROM STDIN. `ours` means marked as Tailgate's. `line` counts from
    1.
    """

    statement: str
    output: tuple[str, ...]
    data: tuple[str, ...] = ()
    ours: bool = False
    line: int = 0

    @property
    def ordered(self) -> bool:
        return bool(re.search(r"\bORDER BY\b|^(EXPLAIN|FETCH|COPY|VALUES)\b", self.statement, re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class Records:
    """Records for a topic: (key, value), with None for NULL."""

    topic: str
    records: tuple[tuple[str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Change events of a table of the shop, in Debezium's form: op, before, after."""

    table: str
    changes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AvroRecords:
    """Values for a topic in Avro. `schema`: that of the topic from here on, or None for the one before."""

    topic: str
    schema: str | None
    values: tuple[Mapping[str, Any], ...]

    @staticmethod
    def of(topic: str, lines: list[str]) -> AvroRecords:
        has_schema = lines[0].startswith('{"type":"record"')
        return AvroRecords(topic, lines[0] if has_schema else None, tuple(map(json.loads, lines[has_schema:])))


Part = str | Example | Records | AvroRecords | Changes  # str: text outside examples, unchanged


def parts(text: str) -> Iterator[Part]:
    """Yields the parts of a page in order. `written` is the inverse."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        kind = fence[1] if fence else None
        yield lines[at]
        at += 1
        if kind is None:
            continue
        assert fence is not None
        end = next(i for i in range(at, len(lines) + 1) if lines[i] == "```")
        block = lines[at:end]
        if kind == "sql":
            yield from _examples(block, at + 1)
        elif kind == "kafka":
            topic, *words = fence[2].split()
            yield "\n".join(block)
            yield Records(topic, tuple(_record(line, "key" in words) for line in block))
        elif kind == "avro":
            yield "\n".join(block)
            yield AvroRecords.of(fence[2].strip(), block)
        elif kind == "debezium":
            yield "\n".join(block)
            yield Changes(fence[2].strip(), tuple(map(json.loads, block)))
        else:
            yield from block
        yield lines[end]
        at = end + 1


def _record(line: str, keyed: bool) -> tuple[str | None, str | None]:
    key, value = line.split(": ", 1) if keyed else (None, line)
    return key, None if value == "null" else value


def _examples(block: list[str], first: int) -> Iterator[Part]:
    at = 0
    while at < len(block):
        begin = at
        if not block[at].strip():
            yield block[at]
            at += 1
            continue
        while (end := END.search(block[at])) is None:
            at += 1
            assert at < len(block), f"line {first + begin}: a statement without its semicolon"
        at += 1
        statement, data, output = "\n".join(block[begin:at]), [], []
        if re.match(r"COPY\b(?!\s*\()(.|\n)*\bFROM\s+STDIN\b", statement, re.IGNORECASE):
            while block[at] != "\\.":
                data.append(block[at])
                at += 1
            at += 1
        while at < len(block) and (block[at].startswith("-- ") or block[at] == "--"):
            output.append(block[at][3:])
            at += 1
        yield Example(statement, tuple(output), tuple(data), end[1] is not None, first + begin)


def written(page: list[Part]) -> str:
    """Returns the text of a page."""
    out: list[str] = []
    for part in page:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, Example):
            data = [*part.data, "\\."] if part.data else []
            out += [part.statement, *data, *(f"-- {line}".rstrip() for line in part.output)]
    return "\n".join(out) + "\n"


def examples(page: Path) -> list[Example]:
    return [p for p in parts(page.read_text()) if isinstance(p, Example)]


def same(expected: tuple[str, ...], got: tuple[str, ...], ordered: bool) -> bool:
    """Returns whether the output matches the expected lines."""
    if any(ANYTHING in line for line in expected):
        return re.fullmatch("".join(map(_pattern, expected)), "".join(_plain(line) + "\n" for line in got)) is not None
    return expected == got if ordered else Counter(expected) == Counter(got)


def _pattern(line: str) -> str:
    return r"(.*\n)*" if line == ANYTHING else re.escape(_plain(line)).replace(ANYTHING, ".*") + r"\n"


def _plain(line: str) -> str:
    """Collapses blanks and rules, because column widths depend on values that `…` omits."""
    return re.sub(r"-{2,}", "--", re.sub(r"\s+", " ", line)).strip()


def recorded(example: Example, got: tuple[str, ...]) -> Example:
    """Returns the example with new output; unchanged if the output already matches."""
    return example if same(example.output, got, example.ordered) else replace(example, output=got)
