"""Functions of pg_temp in PL/pgSQL, as Sequelize creates them for one call. They exist up to the end of their transaction.

    CREATE FUNCTION pg_temp.f(OUT a t, OUT b text) ──► transaction.functions
    SELECT … FROM pg_temp.f()                      ──► the block runs, its values take the place of the call ──► SELECT … FROM (…) AS f
    DROP FUNCTION pg_temp.f()

A function runs once for each call, before the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tailgate.gateway.execute import catalog_changes
from tailgate.gateway.execute.plpgsql.run import run
from tailgate.gateway.execute.plpgsql.statements import Statements
from tailgate.gateway.execute.plpgsql.variables import Named, Record, Variable, catalog_name
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import DuplicateFunction, FeatureNotSupported, ProgramLimitExceeded, StatementTooComplex, UndefinedObject
from tailgate.lake.keywords import NOT_A_COLUMN, quoted, quoted_text
from tailgate.sql import statements as s
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token, tokens
from tailgate.sql.new_items import known_type
from tailgate.sql.plpgsql.functions import SCHEMA, Output
from tailgate.sql.plpgsql.nodes import Block, Declaration

FUNCTIONS_MAX = 100  # of one transaction
CALLS_MAX = 10  # of functions that call each other
CHARACTERS_MAX = 1 << 20  # of the statement that creates a function
NOTHING = Block((), (), (), None)


def create(session: Session, bound: Bound, statement: s.CreateTemporaryFunction, values: Sequence[object]) -> str:
    """Creates the function for the rest of the transaction."""
    functions = session.transaction.functions
    if not session.transaction.pending:
        hint = "It exists up to the end of its transaction."
        raise FeatureNotSupported("a temporary function in PL/pgSQL outside of a transaction block is not supported", hint=hint)
    if len(functions) >= FUNCTIONS_MAX:
        raise ProgramLimitExceeded(f"a transaction can have at most {FUNCTIONS_MAX} temporary functions in PL/pgSQL")
    if len(bound.text) > CHARACTERS_MAX:
        raise ProgramLimitExceeded(f"a temporary function in PL/pgSQL can have at most {CHARACTERS_MAX} characters")
    if statement.name in functions and not statement.replace:
        raise DuplicateFunction(f'function "{statement.name}" already exists with same argument types')
    for output in statement.outputs:
        if not _declaration(output, session.catalog).copied:
            _check_type(output, session.catalog)
    functions[statement.name] = statement
    return "CREATE FUNCTION"


def _check_type(output: Output, catalog: Catalog) -> None:
    """Raises 42704 if the type does not exist."""
    try:
        known_type(named_type(type_name(Parser(output.type))), catalog)
    except UndefinedObject:
        raise UndefinedObject(f"type {output.type} does not exist") from None


async def drop(session: Session, bound: Bound, statement: s.DropFunction, values: Sequence[object]) -> str:
    """Drops functions of the transaction, or others."""
    names = [f.name.name for f in statement.functions if f.name.schema == SCHEMA and f.name.name in session.transaction.functions]
    if len(names) < len(statement.functions):
        return await catalog_changes.run(session, bound, statement, values)
    for name in names:
        session.transaction.functions.pop(name, None)
    return "DROP FUNCTION"


async def with_rows(session: Session, text: str, statements: Statements, *, calls: bool) -> str:
    """Returns the text of a query with the rows of functions in place of their calls in FROM.

    `calls`: the functions are called; otherwise the rows have NULLs.
    """
    functions = session.transaction.functions
    for start, end, name, has_alias in reversed(_calls(tokens(text), functions)):
        function = functions[name]
        outputs = [_declaration(output, statements.catalog) for output in function.outputs]
        with _counted(session):
            values = await run(session, function.block if calls else NOTHING, statements, outputs)
        text = text[:start] + _derived(values) + ("" if has_alias else f" AS {quoted(name)}") + text[end:]
    return text


@contextmanager
def _counted(session: Session) -> Iterator[None]:
    """Counts a running call of a function. Raises 54001 if it is called by too many others."""
    transaction = session.transaction
    if transaction.calls >= CALLS_MAX:
        raise StatementTooComplex("stack depth limit exceeded", hint=f"At most {CALLS_MAX} temporary functions can call each other.")
    transaction.calls += 1
    try:
        yield
    finally:
        transaction.calls -= 1


def _calls(row: Sequence[Token], functions: Mapping[str, object]) -> list[tuple[int, int, str, bool]]:
    """Returns for each call its bounds in the text, the name of the function, and whether an alias follows."""
    calls = list[tuple[int, int, str, bool]]()
    for i in range(len(row) - 4):
        schema, dot, name, opening, closing = row[i : i + 5]
        if (schema.value, dot.value, opening.value, closing.value) == (SCHEMA, ".", "(", ")") and name.value in functions:
            following = row[i + 5] if i + 5 < len(row) else None
            has_alias = following is not None and _begins_alias(following)
            calls.append((schema.position, closing.end, name.value, has_alias))
    return calls


def _begins_alias(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and (token.value == "as" or token.value not in NOT_A_COLUMN))


def _declaration(output: Output, catalog: Catalog) -> Declaration:
    """Returns an OUT parameter as a variable."""
    name = catalog_name(output.type)
    relation = None if name is None else catalog.find(name)
    is_row = relation is not None and relation.is_relation
    return Declaration(output.name, output.type, "rowtype" if is_row else "", False, None, 0)


def _derived(outputs: Mapping[str, Named]) -> str:
    """Returns a subquery with one row, the values of the OUT parameters. That of a relation's row type is a whole row."""
    parts, names = list[str](), ", ".join(map(quoted, outputs))
    for place, (name, output) in enumerate(outputs.items()):
        fields = list(output.all().values()) if isinstance(output, Record) else [output]
        row = ", ".join(f"{_literal(field)} AS {quoted(field.name)}" for field in fields)
        parts.append(f"(SELECT {row}) AS {quoted(name if isinstance(output, Record) else f'1{place}')}")
    return f"(SELECT {names} FROM {', '.join(parts)})"


def _literal(variable: Variable) -> str:
    value = "NULL" if variable.value is None else quoted_text(variable.value)
    return f"CAST({value} AS {variable.type})"
