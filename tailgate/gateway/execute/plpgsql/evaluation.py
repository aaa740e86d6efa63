"""Evaluates the statements and expressions of a block: variables become the parameters of the statement.

A name that may be a column, too, is an error, as with PostgreSQL's default of `plpgsql.variable_conflict`. To know it, the statement is
bound once more with the name as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tailgate.gateway.encode.rows import RowEncoder
from tailgate.gateway.execute.plpgsql.references import READING, Use, parameter, reads_relations, uses, with_parameters
from tailgate.gateway.execute.plpgsql.statements import Statements, Values
from tailgate.gateway.execute.plpgsql.variables import Scope, Variable, names_in, no_field
from tailgate.gateway.protocol.backend import rows_of
from tailgate.gateway.results.copying import CopyOut
from tailgate.gateway.session.statements.parsing import LongWrite
from tailgate.lake import errors as e
from tailgate.lake.catalog import Catalog
from tailgate.lake.types import Field, Type
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.values.codec.style import DEFAULT, Style

SHOWN_MAX = 4096  # characters of a statement in the context of an error; masking a longer text would block other sessions
KEPT_BYTES_MAX = 64 << 20  # of the rows of all running loops of a block
CHANGING = ("INSERT", "UPDATE", "DELETE", "MERGE")  # the tags of statements that set FOUND


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a statement: `columns` and `rows` are None for one without rows. `count`: of rows, or of changed rows."""

    tag: str
    columns: Sequence[Field] | None
    rows: pa.Table | None
    count: int

    def texts(self, number: int, style: Style = DEFAULT) -> list[str | None]:
        """Returns the values of a row, as texts."""
        assert self.columns is not None and self.rows is not None
        encoder = RowEncoder(self.columns, (0,) * len(self.columns), style)
        fields = encoder.field_values(self.rows.slice(number, 1))
        return [None if value is None else value.decode() for (value,) in fields]


class Evaluation:
    """Evaluates the statements of one block of DO."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self._checked: dict[tuple[str, tuple[Use, ...]], Catalog] = {}  # statements whose variables do not name columns
        self._held = 0  # bytes of the rows of running loops

    async def answer(self, text: str, scope: Scope, kept: int | None = None) -> Answer:
        """Runs a statement to its end. `kept`: the number of its first rows to keep, None for all."""
        return await self.run(*await self.with_parameters(text, scope), kept)

    async def run(self, text: str, values: Values, kept: int | None = None) -> Answer:
        """Does the same for a statement with parameters."""
        result = await self.statements.run(text, values)
        if isinstance(result, str):
            return Answer(result.partition(" ")[0], None, None, rows_of(result))
        assert not isinstance(result, CopyOut)
        parts: list[pa.Table] = []
        count = held = size = 0
        try:
            while not result.ended:
                table = await result.fetch(None)
                count += table.num_rows
                part = table if kept is None else table.slice(0, max(kept - held, 0))
                if part.num_rows or not parts:
                    parts.append(part)
                held, size = held + part.num_rows, size + part.nbytes
                if kept is None and self._held + size > KEPT_BYTES_MAX:
                    hint = f"The running loops of a block can read {KEPT_BYTES_MAX >> 20} MiB."
                    raise e.ProgramLimitExceeded("the rows of a loop over a query are too large", hint=hint)
        finally:
            await result.close()
        return Answer(
            getattr(result, "word", "SELECT").partition(" ")[0], result.columns, pa.concat_tables(parts) if parts else None, count
        )

    @contextmanager
    def holding(self, rows: Answer) -> Iterator[None]:
        """Counts the rows of a loop while it runs."""
        size = 0 if rows.rows is None else rows.rows.nbytes
        self._held += size
        try:
            yield
        finally:
            self._held -= size

    async def value(
        self, expression: str, scope: Scope, where: str, style: Style = DEFAULT, *, assignment: str = ""
    ) -> tuple[str | None, Type]:
        """Returns the value of an expression as a text, and its type. `assignment`: its text, if the value is assigned."""
        source = "assignment source" if assignment else "query"
        shown = f'PL/pgSQL assignment "{cut(assignment)}"' if assignment else f'SQL expression "{cut(expression)}"'
        with context(where, shown):
            text, values = await self.with_parameters(f"SELECT {expression}", scope)
        is_simple = bool(values) and not reads_relations(await self.statements.read(text))
        with context(where, "" if is_simple else shown):
            answer = await self.run(text, values, 2)
        assert answer.columns is not None
        query = f"query: {cut(assignment or expression)}"
        if len(answer.columns) != 1:
            number = len(answer.columns)
            message = f"{source} returned {number} column{'' if number == 1 else 's'}"
            raise e.SyntaxError_(message, where=f"{shown if assignment else query}\n{where}")
        if answer.count > 1:
            raise e.CardinalityViolation("query returned more than one row", where=f"{query}\n{where}")
        return (answer.texts(0, style)[0] if answer.count else None), answer.columns[0].type

    # --- variables -----------------------------------------------------------------------------------------------------------------

    async def with_parameters(self, text: str, scope: Scope) -> tuple[str, Values]:
        """Returns a statement with parameters in place of variables, and their values. Raises 42702 for a name that is also a column's."""
        words = frozenset(names_in(text))
        if not scope.may_name(words):
            return text, ()
        statement = await self.statements.read(text)
        if isinstance(statement, LongWrite):
            raise e.FeatureNotSupported("variables in a statement of this length are not supported", hint="Use EXECUTE … USING.")
        if not isinstance(statement, READING):
            return text, ()
        numbers: dict[int, int] = {}
        values: list[tuple[Type, str | None]] = []

        def number(variable: Variable) -> int:
            if id(variable) not in numbers:
                values.append((variable.type, variable.value))
                numbers[id(variable)] = len(values)
            return numbers[id(variable)]

        replacements: list[tuple[Use, str]] = []
        missing: list[tuple[Use, e.TailgateError]] = []
        for use in uses(statement, text):
            found = scope.find(use.parts)
            if found is None:
                continue
            named, rest = found
            if isinstance(named, Variable):
                replacements.append((use, parameter(number(named), use)))
            elif rest == ("*",) and use.listed:
                fields = (parameter(number(field), use, name) for name, field in named.all().items())
                replacements.append((use, ", ".join(fields)))
            elif not rest or rest == ("*",):
                raise e.FeatureNotSupported(f'the row of record "{named.name}" as a value is not supported', hint="Name its fields.")
            elif rest[0] in named.all():
                replacements.append((use, parameter(number(named.all()[rest[0]]), use)))
            else:
                missing.append((use, no_field(named, rest[0])))
        if reads_relations(statement):
            await self._check_columns(text, replacements, values)
        result = with_parameters(text, replacements)
        if missing:
            await self._check_fields(result, values, missing)
        return result, values

    async def _check_columns(self, text: str, replacements: Sequence[tuple[Use, str]], values: Values) -> None:
        """Raises 42702 if the name of a variable is also that of a column."""
        key = text, tuple(use for use, _ in replacements)
        if not replacements or self._checked.get(key) is self.statements.catalog:
            return
        await self.statements.bind(with_parameters(text, replacements), values)  # raises the errors of the statement
        for use, _ in replacements:
            others = [other for other in replacements if other[0] is not use]
            try:
                await self.statements.bind(with_parameters(text, others), values)
            except (e.UndefinedColumn, e.UndefinedTable):
                continue
            except e.TailgateError:
                pass
            detail = "It could refer to either a PL/pgSQL variable or a table column."
            raise e.AmbiguousColumn(f'column reference "{".".join(use.parts)}" is ambiguous', detail=detail, position=use.start)
        self._checked[key] = self.statements.catalog

    async def _check_fields(self, text: str, values: Values, missing: Sequence[tuple[Use, e.TailgateError]]) -> None:
        """Raises 42703 for a name of a field that a record does not have, unless it is that of a column."""
        try:
            await self.statements.bind(text, values)
        except (e.UndefinedColumn, e.UndefinedTable):
            raise missing[0][1] from None


def cut(text: str) -> str:
    """Returns a text for the context of an error, without secrets."""
    return mask_secrets(text[:SHOWN_MAX])


@contextmanager
def context(where: str, statement: str = "") -> Iterator[None]:
    """Adds the context to errors that have none: the line of the code and, if there is one, the statement.

    Positions are in the text of an inner statement, so they are left out. As in PostgreSQL, such an error does not show the statement.
    """
    try:
        yield
    except e.TailgateError as error:
        if statement and error.position is None:
            where = f"{statement}\n{where}"
        error.where, error.position = error.where or where, None
        raise
