"""DEFINE, UNDEFINE and `${name}` on the PostgreSQL protocol: variables that last as long as the session.

    text of a message ──► its statements of ksqlDB with the values of the variables ──► parser

A DEFINE has an effect on the later statements of the same text, too. In the dialect `auto`, INSERT, ALTER and DROP are ksqlDB's here
if they name a stream or table of ksqlDB, or have `${name}` outside of quotes, which PostgreSQL does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from tailgate.gateway.ksqldb.variables import check_name, substituted
from tailgate.lake.catalog import Catalog, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import ProgramLimitExceeded, TailgateError
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.ksqldb.dialect import HTTP, Dialect, is_ksqldb
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.tokens import tokens as ksqldb_tokens
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.statements import split

VARIABLES_MAX = 1000  # of a session
CHARACTERS_MAX = 1 << 20  # of the values of all variables of a session
CHANGING = ("insert", "alter", "drop")


class Variables:
    """The variables of a session. Their names are not case-sensitive."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def define(self, name: str, value: str | None) -> None:
        """Sets a variable, or removes it (`value` None). Raises 22023 for its name, and 54000 above a limit."""
        check_name(name)
        values = _with(self._values, name, value)
        if len(values) > VARIABLES_MAX or sum(map(len, values.values())) > CHARACTERS_MAX:
            detail = f"A session has at most {VARIABLES_MAX}, with {CHARACTERS_MAX} characters."
            raise ProgramLimitExceeded("too many variables", detail=detail, hint="UNDEFINE some of them.")
        self._values = values

    def clear(self) -> None:
        """Removes all variables."""
        self._values = {}

    def listed(self) -> list[tuple[str, str]]:
        """Returns names and values, by name."""
        return sorted(self._values.items())

    @staticmethod
    def may_be_in(text: str, dialect: Dialect) -> bool:
        """Returns whether the text of a message may contain variables."""
        return "${" in text and dialect not in ("postgresql", HTTP)

    def replaced(self, text: str, dialect: Dialect, catalog: Catalog) -> str:
        """Returns the text of a message with the values of variables in its statements of ksqlDB. Raises 42704 or 22023."""
        return "".join(_parts(text, self._values, dialect, catalog))


def _parts(text: str, values: Mapping[str, str], dialect: Dialect, catalog: Catalog) -> Iterator[str]:
    """Yields the statements of a text with their values, and the text between them."""
    end = 0
    for part in split(text, dialect):
        yield text[end : part.position]
        end = part.position + len(part.text)
        if not _may_have_variables(part.text, dialect, catalog):
            yield part.text
            continue
        try:
            statement = substituted(part.text, values)
        except TailgateError as error:
            error.position = None if error.position is None else error.position + part.position
            raise
        yield statement
        if ksqldb_tokens(statement)[0].value in ("define", "undefine"):
            defined = parse(statement)
            if isinstance(defined, k.DefineVariable):
                values = _with(values, defined.name, defined.value)
    yield text[end:]


def _may_have_variables(text: str, dialect: Dialect, catalog: Catalog) -> bool:
    """Returns whether a statement is ksqlDB's, as far as its words and the catalog tell."""
    if is_ksqldb(text, dialect):
        return True
    row = ksqldb_tokens(text)
    if row[0].value not in CHANGING:
        return False
    names_item = any(t.kind in ("word", "quoted") and ksqldb_of(catalog.find(Name(t.value))) is not None for t in row[1:5])
    return names_item or any(a.value == "$" and b.value == "{" for a, b in pairwise(tokens(text)))


def _with(values: Mapping[str, str], name: str, value: str | None) -> dict[str, str]:
    """Returns the variables with one of them changed."""
    others = {n: v for n, v in values.items() if n != name.lower()}
    return others if value is None else {**others, name.lower(): value}
