"""The names of a statement that changes the catalog, looked up once: text to `lake.resolution.Resolution`.

Every identifier of the text, alone and with the one before its dot, is looked up as a name, whatever it stands for; so are those in
strings, because a function's body may be one. That is more than the statement names (columns, options), and never less: a name that
is not looked up here means nothing when the statement is executed.

A name without schema is looked up along the path, and in the schema that a new item of this name would go to.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake.catalog import Catalog
from lake.errors import TailgateError
from lake.names import Name
from lake.resolution import Resolution, authority, version
from lake.schemas import TEMPORARY
from sql.tokens import Token, tokens


def resolve(text: str, catalog: Catalog, base: Catalog) -> Resolution:
    """The names of a statement as a session's catalog has them. Temporary views hide other items of their name, and have no id.

    `base`: the newest catalog, whose items are meant; a session in a block may see earlier columns of theirs.
    """
    known = {item.name for item in catalog.items.values()}
    names = {name for name in names_in(text) if name.name in known}
    try:
        home = catalog.home(Name("")).name
        names |= {Name(name.name, home) for name in names if name.schema is None}
    except TailgateError:
        pass  # no schema of the path takes new items
    relations: dict[Name, int] = {}
    functions: dict[Name, tuple[int, ...]] = {}
    for name in names:
        item = catalog.find(name)
        if item is not None and item.id in base.items:
            relations[name] = item.id
        if ids := tuple(function.id for function in catalog.functions(name) if function.id in base.items):
            functions[name] = ids
    found = {*relations.values(), *(id for ids in functions.values() for id in ids)}
    path = tuple(p for p in catalog.path if not p.startswith(TEMPORARY))
    return Resolution(path, relations, functions, {id: version(base[id]) for id in sorted(found)}, authority(base))


def names_in(text: str) -> Iterator[Name]:
    """
    >>> sorted(str(name) for name in names_in("GRANT SELECT ON s.\\"T\\" TO r"))
    ['T', 'grant', 'on', 'r', 's', 's.T', 'select', 'to']
    """
    row = tokens(text)
    yield from _names(row)
    for token in row:
        if token.kind == "string":
            yield from _names(tokens(token.value))


def _names(row: tuple[Token, ...]) -> Iterator[Name]:
    for i, token in enumerate(row):
        if token.kind in ("word", "quoted"):
            yield Name(token.value)
            if i + 2 < len(row) and row[i + 1].value == "." and row[i + 2].kind in ("word", "quoted"):
                yield Name(row[i + 2].value, token.value)
