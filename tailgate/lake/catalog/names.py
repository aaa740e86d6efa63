"""Names of relations and schemas, as parsed from statements and as printed.

text ──► Name(name, schema) ──► Catalog.find: in the named schema, or the first schema of the path that has it ──► Item
Item ──► Catalog.name_of: without the schema if the path finds it ──► Name.sql
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tailgate.lake.keywords import quoted as quoted


@dataclass(frozen=True, slots=True)
class Name:
    """A relation's name, with a schema or None. `str()` is its form in error messages, `sql` its form in statements."""

    name: str
    schema: str | None = None
    position: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}" if self.schema else quoted(self.name)


_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*(,|\Z)')


def listed(text: str) -> tuple[str, ...]:
    """Returns the names of a list such as search_path; unquoted ones are folded to lower case. Raises ValueError for invalid syntax.

    >>> listed('"$user", Public')
    ('$user', 'public')
    """
    names: list[str] = []
    at = 0
    while text.strip():
        item = _ITEM.match(text, at)
        if item is None:
            raise ValueError(text)
        names.append(item[2].lower() if item[1] is None else item[1].replace('""', '"'))
        at = item.end()
        if not item[3]:
            break
    return tuple(names)


def list_of(names: tuple[str, ...]) -> str:
    """Returns names as a list that `listed` parses.

    >>> list_of(("s", "Big One", ""))
    's, "Big One", ""'
    """
    return ", ".join(map(quoted, names))
