"""Declares variables and assigns values to them, which are converted as PL/pgSQL does: by an assignment cast, or else as texts.

Source: PostgreSQL 15, exec_cast_value(), exec_move_row() in pl_exec.c; find_coercion_pathway() for COERCION_PLPGSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.gateway.execute.plpgsql.evaluation import Answer, Evaluation, context
from tailgate.gateway.execute.plpgsql.variables import Named, Record, Scope, Variable, catalog_name, names_in
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake import errors as e
from tailgate.lake.types import TEXT, Field, Type
from tailgate.sql.binder.types.coercion import bare_type, coerce, same
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.plan import Column
from tailgate.sql.plan.rows import is_row
from tailgate.sql.plpgsql.nodes import Declaration, Reference

Value = tuple[str | None, Type]
NULL: Value = (None, TEXT)
CHARACTERS_MAX = 64 << 20  # of the texts of all variables of a block
ONE_LONG = ("bpchar", "bit")  # types whose SQL names have one character or bit; in quotes, these names have any number


class Assignments:
    """The variables of one block of DO."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._declared: dict[tuple[str, str], tuple[Field, ...]] = {}  # the columns of types, by their texts
        self._characters = 0

    async def declare(self, declaration: Declaration, scope: Scope, where: str) -> None:
        """Adds a variable to a scope, with its default or NULL."""
        with context(where):
            variable = await self._variable(declaration, scope)
        if declaration.default is not None:
            value = await self._evaluation.value(declaration.default, scope, where)
            with context(where):
                await self.assign(variable, value)
        scope.names[declaration.name] = variable

    async def _variable(self, declaration: Declaration, scope: Scope) -> Named:
        name, type = declaration.name, declaration.type
        if declaration.copied == "type" and (found := scope.find(names_in(type))) is not None and isinstance(found[0], Variable):
            return Variable(name, found[0].type, not_null=declaration.not_null, domain=found[0].domain)
        if not declaration.copied and type.lower() in ("record", "refcursor"):
            if type.lower() == "refcursor":
                raise e.FeatureNotSupported("refcursor in DO is not supported")
            return Record(name)
        columns = await self._columns(type, declaration.copied)
        if declaration.copied == "rowtype":
            return _record(name, columns)
        if is_row(columns[0].type):
            return _record(name, columns[0].type.fields)
        domain = type if not declaration.copied and self._is_domain(type) else ""
        return Variable(name, columns[0].type, not_null=declaration.not_null, domain=domain)

    def _is_domain(self, type: str) -> bool:
        name = catalog_name(type)
        return name is not None and self._evaluation.statements.catalog.find_domain(name) is not None

    async def _columns(self, type: str, copied: str) -> tuple[Field, ...]:
        """Returns a column of a type or of a column of a relation, or the columns of a relation."""
        if (type, copied) not in self._declared:
            relation, _, column = type.rpartition(".")
            query = f"SELECT * FROM {type}" if copied == "rowtype" else f"SELECT CAST(NULL AS {type})"
            if copied == "type":
                if not relation:
                    raise e.SyntaxError_(f'variable "{type}" does not exist')
                query = f"SELECT {column} FROM {relation}"
            try:
                columns = (await self._evaluation.statements.bind(query, ())).columns
            except (e.UndefinedColumn, e.UndefinedTable):
                if copied == "type":
                    raise e.SyntaxError_('syntax error at or near "%"') from None
                raise
            assert columns is not None
            self._declared[type, copied] = columns
        return self._declared[type, copied]

    # --- values --------------------------------------------------------------------------------------------------------------------

    async def assign(self, target: Named, value: Value) -> None:
        """Assigns a value to a variable. Raises 0A000 for a record."""
        if isinstance(target, Record):
            raise e.FeatureNotSupported(f'assignment to record "{target.name}" is not supported', hint="Use SELECT … INTO.")
        self._set(target, await self._converted(value, target))

    def _set(self, variable: Variable, text: str | None) -> None:
        """Sets a value. Raises 54000 if the variables of the block would have too many characters together."""
        added = len(text or "") - len(variable.value or "")
        if self._characters + added > CHARACTERS_MAX:
            raise e.ProgramLimitExceeded("the values of variables are too long", hint=f"At most {CHARACTERS_MAX} characters in a block.")
        variable.set(text)
        self._characters += added

    def forget(self, *variables: Named) -> None:
        """No longer counts the values of variables, whose block has ended."""
        for variable in variables:
            for field in (variable.fields or {}).values() if isinstance(variable, Record) else (variable,):
                self._characters -= len(field.value or "")

    async def assign_row(self, targets: Sequence[Reference], scope: Scope, answer: Answer, number: int | None) -> None:
        """Assigns a row of a result to variables, or to one record. `number`: None for NULLs."""
        assert answer.columns is not None
        types = [column.type for column in answer.columns]
        texts = [None] * len(types) if number is None else answer.texts(number)
        values = list(zip(texts, types, strict=True))
        first = scope.variable(targets[0])
        if isinstance(first, Record) and len(targets) > 1:
            raise e.SyntaxError_("record variable cannot be part of multiple-item INTO list")
        if isinstance(first, Record) and not first.fixed:
            self.forget(first)
            first.fields = {}
            for column, (text, type) in zip(answer.columns, values, strict=True):
                if column.name not in first.fields:
                    first.fields[column.name] = field = Variable(column.name, type)
                    self._set(field, text)
            return
        variables: list[Named] = list(first.all().values()) if isinstance(first, Record) else [scope.variable(t) for t in targets]
        for place, variable in enumerate(variables):
            await self.assign(variable, values[place] if place < len(values) else NULL)

    async def _converted(self, value: Value, target: Variable) -> str | None:
        text, source = value
        if target.domain:
            return await self._cast(text, source if _assignable(source, target.type) else TEXT, target.domain)
        if text is None or (same(source, target.type) and not target.type.modifiers):
            return text
        base = bare_type(target.type)
        name = f'"{base.name}"{"[]" * base.is_array}' if base.name in ONE_LONG else str(base)
        return await self._cast(text, source if _assignable(source, base) else TEXT, name, target.type)

    async def _cast(self, text: str | None, source: Type, name: str, type: Type | None = None) -> str | None:
        """Returns a value as one of a type with this name. `type`: the type with its modifiers, which apply as in an assignment."""
        answer = await self._evaluation.run(f"SELECT CAST($1 AS {name})", [(source, text)], 1)
        assert answer.rows is not None and answer.columns is not None
        if type is not None and type.modifiers:
            column = Field(name, replace(type, multidimensional=answer.columns[0].type.multidimensional))
            answer = Answer(answer.tag, (column,), fitted(answer.rows, (column,)), 1)
        return answer.texts(0)[0]


def _record(name: str, columns: Sequence[Field]) -> Record:
    return Record(name, {column.name: Variable(column.name, column.type) for column in columns}, fixed=True)


def _assignable(source: Type, target: Type) -> bool:
    """Returns whether a type has an assignment cast to another one; otherwise values are converted as texts."""
    return coerce(Column(0, source), target, Parameters(), "assignment") is not None
