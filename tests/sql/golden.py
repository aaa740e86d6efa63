"""Scripts of statements with the results of `sql`, one case for each feature.

    # the subject of the case
    > SELECT …
    ---
    the result

The result of a query is its columns and its plan; that of another statement its value. CREATE VIEW also
adds the view to the script's catalog. A result may be an error. TAILGATE_UPDATE=1 records the results
again; review the diff.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tailgate.lake.catalog import Catalog, Change, MaterializedView, View
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query, bind_view
from tailgate.sql.plan import Query
from tailgate.sql.plan.explain import tree
from tailgate.sql.plan.properties import append_only, key
from tailgate.sql.statements import CreateView, Select, Statement, parse

SCRIPTS = Path(__file__).parent / "golden"


@dataclass
class Case:
    comment: str
    statement: str
    answer: str


def cases(path: Path) -> list[Case]:
    result = []
    for block in re.split(r"\n\n+(?=[#>])", path.read_text().strip("\n")):
        lines = block.splitlines()
        comment = [line for line in lines if line.startswith("#")]
        cut = lines.index("---") if "---" in lines else len(lines)
        statement = "\n".join(line[2:] for line in lines[len(comment) : cut])
        result.append(Case("\n".join(comment), statement, "\n".join(lines[cut + 1 :]).strip("\n")))
    return result


def written(all: list[Case]) -> str:
    blocks = []
    for case in all:
        statement = "\n".join(f"> {line}".rstrip() for line in case.statement.splitlines())
        blocks.append("\n".join(filter(None, [case.comment, statement, "---", case.answer])))
    return "\n\n".join(blocks) + "\n"


class Script:
    """Runs statements in order over one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def answer(self, text: str) -> str:
        try:
            return self._answer(text, parse(text))
        except TailgateError as error:
            more = [f"{word}: {part}" for word, part in (("DETAIL", error.detail), ("HINT", error.hint)) if part]
            at = [] if error.position is None else [f"at: {text[error.position :].splitlines()[0] if text[error.position :] else '(end)'}"]
            return "\n".join([f"ERROR {error.sqlstate}: {error.message}", *more, *at])

    def _answer(self, text: str, statement: Statement) -> str:
        match statement:
            case Select():
                return self._query(bind_query(statement.query, self.catalog))
            case CreateView(name=name, materialized=materialized):
                bound = bind_view(statement, self.catalog)
                item = (MaterializedView if materialized else View)(
                    self.catalog.next_id, name.name, bound.columns, key(bound.plan), materialized,
                    depends=bound.depends, sql=text, query=statement.query.text,
                )  # fmt: skip
                self.catalog = self.catalog.apply(Change((item,)))
                return self._query(bound)
        return shown(statement)

    def _query(self, query: Query) -> str:
        columns = ", ".join(f"{f.name} {f.type}{'' if f.nullable else ' not null'}" for f in query.columns)
        lines = [f"({columns})", tree(query.plan)]
        identified = key(query.plan)
        if identified is not None:
            lines.append(f"key: {', '.join(query.columns[i].name for i in identified) or 'one row'}")
        if append_only(query.plan, self.catalog):
            lines.append("append-only")
        if query.parameters:
            lines.append("parameters: " + ", ".join(map(str, query.parameters)))
        return "\n".join(lines)


def shown(statement: Statement) -> str:
    """Returns a statement's value without positions and default values."""
    text = repr(statement)
    text = re.sub(r", position=(None|\d+)", "", text)
    text = re.sub(r", options_at=\(\d+, \d+\)", "", text)
    text = re.sub(r", offset=-?\d+", "", text)
    text = re.sub(r"Type\(name='(\w+)', modifiers=\(\), declared=True, is_array=False, fields=\(\)\)", r"\1", text)
    return re.sub(r", schema=None", "", text)
