"""Pages of docs whose examples are run: each statement is followed by what psql prints for it, as comments.

    ```sql                                     ```kafka topic [key]
    SELECT id, who FROM large;                 1: {"id": 1}
    --  id | who                               1: null
    -- ----+-----                              ```
    --   3 | ann
    -- (1 row)                                 records that are written to a topic, with their keys if the word
    SHOW TABLES; -- Tailgate                   `key` stands there; NULL is written null
    …
    ```
`-- Tailgate` behind a statement: it is ours alone, or differs, and is not asked of PostgreSQL. A statement ends with a semicolon, or
psql's `\\gset`, at the end of its line; psql's `\\i file` is one, too. Lines between `COPY … FROM STDIN;` and `\\.` are its data. `…` in
a line of output stands for anything, and alone for any number of lines. `^C` as the last line of output: the statement goes on until it
is cancelled. Rows without ORDER BY may come in any order.

A block ```debezium table has change events of a table of `examples/shop`, a line of JSON each.
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
    """A statement. `data`: lines of COPY FROM STDIN. `output`: what is printed. `ours`: marked so. `line`: counts from 1."""

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
    """Lines for a topic: (key, value), NULL as None."""

    topic: str
    records: tuple[tuple[str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Change events of a table of the shop, as Debezium writes them: op, before, after."""

    table: str
    changes: tuple[Mapping[str, Any], ...]


Part = str | Example | Records | Changes  # str: lines of the page that are no example, as they are


def parts(text: str) -> Iterator[Part]:
    """A page, in order; `written` makes it again."""
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
    """The text of a page."""
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
    """Whether a page says what was printed."""
    if any(ANYTHING in line for line in expected):
        return re.fullmatch("".join(map(_pattern, expected)), "".join(_plain(line) + "\n" for line in got)) is not None
    return expected == got if ordered else Counter(expected) == Counter(got)


def _pattern(line: str) -> str:
    return r"(.*\n)*" if line == ANYTHING else re.escape(_plain(line)).replace(ANYTHING, ".*") + r"\n"


def _plain(line: str) -> str:
    """Widths of columns depend on the values that are not told, so blanks and rules count as one."""
    return re.sub(r"-{2,}", "--", re.sub(r"\s+", " ", line)).strip()


def recorded(example: Example, got: tuple[str, ...]) -> Example:
    """The example with what was printed, unless it says so already."""
    return example if same(example.output, got, example.ordered) else replace(example, output=got)
