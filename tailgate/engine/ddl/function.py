"""CREATE FUNCTION, DROP FUNCTION and COMMENT ON FUNCTION: changes of the catalog.

CREATE FUNCTION binds the body once, with arguments of the declared types, to find its errors and
its dependencies. Each call binds it again (`sql.binder.expressions.sql_functions`).

Source: PostgreSQL 15, src/backend/commands/functioncmds.c, src/backend/catalog/pg_proc.c
ProcedureCreate().
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.replace import replacements
from tailgate.lake.catalog import Catalog, Change, Function, Item
from tailgate.lake.catalog.functions import find, matching, signature
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import Schema
from tailgate.lake.errors import (
    DuplicateFunction,
    FeatureNotSupported,
    InvalidFunctionDefinition,
    UndefinedFunction,
    UndefinedObject,
)  # fmt: skip
from tailgate.lake.types import Field, Type
from tailgate.sql.binder.expressions.sql_functions import is_built_in
from tailgate.sql.binder.queries.function_bodies import check_body
from tailgate.sql.drop import Notice, notice, removal
from tailgate.sql.new_items import check_built_in, normalized
from tailgate.sql.statements import AlterFunction, CommentOnFunction, CreateFunction, DropFunction, FunctionName
from tailgate.sql.tables.owners import given


def create_function(statement: CreateFunction, text: str, catalog: Catalog, owner: int) -> tuple[Item, ...]:
    """Returns the items to put into the catalog; `text` is the statement as typed.

    With OR REPLACE they include replacements of the materialized views that call the function.
    """
    name = statement.name.name
    schema = catalog.home(statement.name)
    if is_built_in(name):
        raise FeatureNotSupported(
            f'a function with the name of a built-in one, "{name}", is not supported', position=statement.name.position
        )
    item = _function(statement, text, owner, schema, catalog)
    old = matching(catalog.functions(Name(name, schema.name)), item.types)
    if old is not None and not statement.replace:
        raise DuplicateFunction(f'function "{name}" already exists with same argument types')
    if old is not None:
        _check_same(old, item)
    if old is None:
        depends = tuple(check_body(item, statement.body.tree, catalog.apply(Change(put=(item,)))).used)
        return (normalized(replace(item, depends=depends), statement, catalog),)
    changed = replace(item, id=old.id, owner=old.owner)
    depends = tuple(check_body(changed, statement.body.tree, catalog.apply(Change(put=(changed,)))).used)
    item = replace(item, depends=depends, owner=old.owner, comments=old.comments)
    if old.id in catalog.below(item):  # through a materialized view: the binder sees calls, but not the definition of stored rows
        raise FeatureNotSupported("recursive functions are not supported", position=statement.name.position)
    return replacements(normalized(item, statement, catalog), catalog, old)


def _function(statement: CreateFunction, text: str, owner: int, schema: Schema, catalog: Catalog) -> Function:
    """Returns the item of a function, without its dependencies. Raises 42P13 for duplicate result columns."""
    for argument in statement.arguments:
        _check_argument(argument.type, catalog)
    for type in (*(() if statement.returns is None else (statement.returns,)), *(column.type for column in statement.table or ())):
        check_built_in(type, catalog, "a result", None)
    arguments = tuple(Field(a.name, a.type) for a in statement.arguments)
    defaults = tuple(a.default for a in statement.arguments if a.default is not None)
    if statement.row is not None:
        relation = catalog.find(statement.row)
        if relation is None and catalog.find(statement.row, "type") is not None:
            raise FeatureNotSupported(f"a result of type {statement.row} is not supported", hint="Use text, and cast it.")
        if relation is None or not relation.is_relation:
            raise UndefinedObject(f'type "{statement.row}" does not exist')
        rows: tuple[Field, ...] | None = tuple(Field(c.name, c.type) for c in relation.columns)
        returns = Type("record")
    elif statement.table is not None:
        rows = tuple(Field(c.name, c.type) for c in statement.table)
        for i, column in enumerate(rows):
            if column.name in [c.name for c in rows[:i]]:
                raise InvalidFunctionDefinition(f'parameter name "{column.name}" used more than once')
        returns = rows[0].type if len(rows) == 1 else Type("record")
    else:
        assert statement.returns is not None
        returns = statement.returns
        rows = (Field("", returns),) if statement.many else None
    return Function(
        catalog.next_id,
        statement.name.name,
        arguments,
        sql=text,
        query=statement.body.text,
        owner=owner,
        schema=schema.id,
        returns=returns,
        defaults=defaults,
        rows=rows,
        strict=statement.strict,
        volatility=statement.volatility,
        variadic=any(argument.variadic for argument in statement.arguments),
    )


def _check_argument(type: Type, catalog: Catalog) -> None:
    """Raises 0A000 for an enum type or a domain. Raises 42704 if the type does not exist, without quotes, as PostgreSQL does here."""
    try:
        check_built_in(type, catalog, "an argument", None)
    except UndefinedObject as error:
        raise UndefinedObject(error.message.replace('"', "")) from None


def _check_same(old: Function, new: Function) -> None:
    """Raises 42P13 if OR REPLACE changes the return type or the names of arguments, or removes defaults."""
    hint = f"Use DROP FUNCTION {old.display_name} first."
    if (old.returns, old.rows) != (new.returns, new.rows):
        if old.returns == new.returns and old.rows is not None and new.rows is not None:
            detail = "Row type defined by OUT parameters is different."
            raise InvalidFunctionDefinition("cannot change return type of existing function", detail=detail, hint=hint)
        raise InvalidFunctionDefinition("cannot change return type of existing function", hint=hint)
    for before, after in zip(old.arguments, new.arguments, strict=True):
        if before.name and before.name != after.name:
            raise InvalidFunctionDefinition(f'cannot change name of input parameter "{before.name}"', hint=hint)
    if len(new.defaults) < len(old.defaults):
        raise InvalidFunctionDefinition("cannot remove parameter defaults from existing function", hint=hint)


# --- statements that refer to a function ----------------------------------------------------------------------------------------


def find_function(name: FunctionName, catalog: Catalog) -> Function:
    """Returns the item of a function that a statement refers to. Raises 42883 if it does not exist."""
    catalog.check_schema(name.name)
    return find(name.name, name.types, catalog)


def drop_function(statement: DropFunction, catalog: Catalog) -> tuple[Change, list[Notice]]:
    """Returns the change that removes the functions, and notices."""
    notices: list[Notice] = []
    removed: dict[int, Item | Schema] = {}
    for function in statement.functions:
        try:
            item = find_function(function, catalog)
        except UndefinedFunction:
            if not statement.if_exists:
                raise
            notices.append(notice(f"function {signature(function.name.name, function.types or ())} does not exist, skipping"))
        else:
            removed[item.id] = item
    return removal(removed, catalog, notices, cascade=statement.cascade)


def alter_function(statement: AlterFunction, catalog: Catalog) -> Change:
    """Returns the change that gives a function to another owner."""
    return given(find_function(statement.function, catalog), catalog.role(statement.owner).id, catalog)


def comment_on_function(statement: CommentOnFunction, catalog: Catalog) -> Change:
    """Returns the change that sets the comment of a function."""
    item = find_function(statement.function, catalog)
    return Change(put=(replace(item, comments={"": statement.text} if statement.text else {}),))
