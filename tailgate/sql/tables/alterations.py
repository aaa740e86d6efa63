"""ALTER TABLE: the catalog after the statement, for the gateway, which checks and changes the rows, and for the engine.

Source: PostgreSQL 15, src/backend/commands/tablecmds.c (ATPrepCmd, ATExecAddColumn, ATExecColumnDefault, ATExecDropNotNull,
ATExecAddConstraint, ATExecDropConstraint, ATExecValidateConstraint, renameatt_internal, ATExecChangeOwner).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from typing_extensions import assert_never

from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Change, Index, Item, Sequence, Table
from tailgate.lake.errors import (
    DependentObjectsStillExist,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidTableDefinition,
    SyntaxError_,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from tailgate.lake.types import Field
from tailgate.sql.new_items import known_column, known_domain, stored_column, stored_type
from tailgate.sql.plan import Scalar
from tailgate.sql.sequence_definitions import advanced
from tailgate.sql.statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterTable,
    Check,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    ForeignKey,
    RenameColumn,
    RenameConstraint,
    SetDefault,
    SetIdentity,
    SetNullable,
    SetOwner,
    SetType,
    Unique,
    ValidateConstraint,
)
from tailgate.sql.statements.tables import StorageAction, TableAction
from tailgate.sql.tables.columns import dropped_column, renamed_column, stored_name
from tailgate.sql.tables.constraints import check_constraint, constraint_names, unique_index, with_foreign_keys
from tailgate.sql.tables.defaults import default_by_name, placeless
from tailgate.sql.tables.definition import definition
from tailgate.sql.tables.generated import check_default, check_type, with_expression, without_expression
from tailgate.sql.tables.identity import add_identity, column_sequence, drop_identity, next_value, set_identity
from tailgate.sql.tables.owners import given
from tailgate.sql.tables.rewriting import new_value, retyped_column, rewritten, same_form, widens
from tailgate.sql.tables.storage.changes import with_collation, with_storage


@dataclass(frozen=True, slots=True)
class Alteration:
    """The result of ALTER TABLE: the table before and after it, the change of the catalog, and notices as (message, SQLSTATE).

    `validated`: names of checks and foreign keys that existing rows must satisfy. `values`: of columns with another type, by position,
    over the columns before. If the table after it has another id, it is a new relation with all rows.
    """

    before: Table
    after: Table
    change: Change
    notices: tuple[tuple[str, str], ...] = ()
    validated: frozenset[str] = frozenset()
    values: Mapping[int, Scalar] = field(default_factory=dict)

    @property
    def rewrites(self) -> bool:
        return self.after.id != self.before.id

    def numbered(self, copies: int) -> Alteration:
        """Returns the alteration after its new columns have got values of their new sequences for this number of rows."""
        new = {column.name for column in self.after.columns[len(self.before.columns) :]}
        put = (advanced(i, copies) if isinstance(i, Sequence) and i.column in new else i for i in self.change.put)
        return replace(self, change=replace(self.change, put=tuple(put)))

    @property
    def changes_plans(self) -> bool:
        """Tells whether existing columns have changed, so that views may have other plans."""
        return not self.rewrites and any(old != new for old, new in zip(self.before.columns, self.after.columns, strict=False))


def alteration(table: Table, statement: AlterTable, catalog: Catalog) -> Alteration:
    """Returns the result of the statement. `catalog`: also has the sequences of defaults and the referenced tables."""
    work = _Work(table, catalog, table)
    for action in sorted(statement.actions, key=_pass):
        work.carry_out(_with_known_type(action, catalog))
    if work.rewrites or work.table.key != table.key:
        work.rewrite()
    if work.table != table:
        work.put(replace(work.table, sql=definition(work.table)))
    after = work.catalog
    put = tuple(item for id, item in after.items.items() if catalog.items.get(id) is not item)
    dropped = tuple(id for id in catalog.items if id not in after.items)
    access = tuple(each for id, each in after.access.items() if catalog.access.get(id) is not each)
    change = Change(put=put, drop=dropped, put_access=access)
    return Alteration(table, work.table, change, tuple(work.notices), frozenset(work.validated), work.values)


def _with_known_type(action: TableAction, catalog: Catalog) -> TableAction:
    match action:
        case AddColumn(column=column):
            return replace(action, column=stored_column(known_column(column, catalog)))
        case SetType(type=type, type_position=at):
            type, domain = known_domain(type, catalog, at)
            return replace(action, type=stored_type(type), domain=domain)
        case _:
            return action


def _pass(action: TableAction) -> int:
    """Returns the place of an action in PostgreSQL's order: it drops first, and adds constraints last, foreign keys after the others."""
    match action:
        case DropColumn() | DropConstraint() | DropExpression() | SetDefault(default=None):
            return 0
        case SetType():
            return 1
        case AddConstraint(constraint=ForeignKey()):
            return 5
        case AddConstraint(constraint=Check()):
            return 4
        case AddConstraint() | ValidateConstraint() | AddIdentity() | SetDefault():
            return 3
        case _:
            return 2


@dataclass(slots=True)
class _Work:
    """The catalog while the actions of a statement are carried out."""

    table: Table
    catalog: Catalog
    before: Table
    values: dict[int, Scalar] = field(default_factory=dict)
    rewrites: bool = False
    notices: list[tuple[str, str]] = field(default_factory=list)
    validated: set[str] = field(default_factory=set)
    existing: set[str] = field(default_factory=set)  # names of columns that ADD COLUMN IF NOT EXISTS has not added

    def put(self, item: Item) -> None:
        """Puts an item into the catalog, which may be the table itself."""
        self.catalog = self.catalog.apply(Change(put=(item,)))
        if isinstance(item, Table) and item.id == self.table.id:
            self.table = item

    def rewrite(self) -> None:
        """Gives the table another id, for a new relation with all rows."""
        change = rewritten(self.table, self.catalog)
        self.catalog = self.catalog.apply(change)
        self.table = self.catalog.expect(Table, change.put[0].id)

    def carry_out(self, action: TableAction) -> None:
        if isinstance(action, StorageAction):
            self.put(with_storage(self.table, action, self._position, self.catalog))
            return
        match action:
            case AddColumn():
                self._add_column(action)
            case SetDefault():
                self._set_default(action)
            case SetNullable():
                self._set_nullable(action)
            case AddIdentity(column=name):
                self._apply(add_identity(action, self._column(name), self.table, self.catalog))
            case SetIdentity(column=name):
                self._apply(set_identity(action, self._column(name), self.table, self.catalog))
            case DropIdentity():
                self._drop_identity(action)
            case DropExpression():
                self._column(action.column)
                table, notices = without_expression(self.table, action)
                self.put(table)
                self.notices += notices
            case AddConstraint(constraint=constraint, new_column=column):
                if column not in self.existing:
                    self._add_constraint(constraint)
            case DropConstraint():
                self._drop_constraint(action)
            case ValidateConstraint(name=name):
                self._validate(name)
            case RenameConstraint(constraint=old, name=new):
                self._rename_constraint(old, new)
            case SetOwner(role=role):
                self._apply(given(self.table, self.catalog.role(role).id, self.catalog))
            case DropColumn():
                self._drop_column(action)
            case RenameColumn(column=old, name=new):
                if old not in [c.name for c in self.table.columns]:
                    raise UndefinedColumn(f'column "{old}" does not exist')
                self._apply(renamed_column(self.table, self._position(old), new, self.catalog))
            case SetType():
                self._set_type(action)
            case _:
                assert_never(action)

    # ---- columns

    def _add_column(self, action: AddColumn) -> None:
        column, table = action.column, self.table
        if column.name in [c.name for c in table.columns]:
            message = f'column "{column.name}" of relation "{table.name}" already exists'
            if not action.if_not_exists:
                raise DuplicateColumn(message)
            self.notices.append((f"{message}, skipping", DuplicateColumn.sqlstate))
            self.existing.add(column.name)
            return
        new = Field(column.name, column.type, column.nullable, domain=column.domain)
        own = (
            default_by_name(new, column.default, self.catalog)
            if column.generated is None
            else {column.name: next_value(self.catalog.next_id)}
        )
        identity = dict(table.identity)
        if column.generated is not None and column.generated != "serial":
            identity[column.name] = column.generated
        names = stored_name(table, column.name)
        columns = (*table.columns, new)
        after = replace(table, columns=columns, defaults={**table.defaults, **own}, stored_names=names, identity=identity)
        self.put(with_expression(with_collation(after, len(table.columns), column.collation), column))
        if column.generated is not None:
            self.put(column_sequence(column, self.table, self.catalog))

    def _drop_identity(self, action: DropIdentity) -> None:
        column = self._column(action.column)
        if action.if_exists and action.column not in self.table.identity:
            message = f'column "{action.column}" of relation "{self.table.name}" is not an identity column, skipping'
            self.notices.append((message, "00000"))
            return
        self._apply(drop_identity(column, self.table, self.catalog))

    def _drop_column(self, action: DropColumn) -> None:
        if action.if_exists and action.column not in [c.name for c in self.table.columns]:
            self.notices.append((f'column "{action.column}" of relation "{self.table.name}" does not exist, skipping', "00000"))
            return
        position = self._position(action.column)
        change, notices = dropped_column(self.table, position, self.catalog, cascade=action.cascade)
        self._apply(change)
        self.notices += [(notice, "00000") for notice in notices]

    def _set_type(self, action: SetType) -> None:
        position = self._position(action.column)
        if position in self.values:
            raise FeatureNotSupported(f'cannot alter type of column "{action.column}" twice')
        check_type(self.table, action, position)
        if action.casts and widens(self.before.columns[position].type, action.type):
            action = replace(action, using=None)
        self.values[position] = new_value(action, self.before, self.catalog)
        self._apply(retyped_column(self.table, position, action, self.catalog))
        self.rewrites |= action.using is not None or not same_form(self.before.columns[position].type, action.type)
        self.validated |= {c.name for c in self.table.checks if position in c.columns and c.valid}
        self.validated |= {k.name for k in self.table.foreign_keys if position in k.columns and k.valid}

    def _apply(self, change: Change) -> None:
        self.catalog = self.catalog.apply(change)
        self.table = self.catalog.expect(Table, self.table.id)

    def _position(self, name: str) -> int:
        return self.table.columns.index(self._column(name))

    def _set_default(self, action: SetDefault) -> None:
        target, table = self._column(action.column), self.table
        if action.column in table.identity:
            raise SyntaxError_(
                f'column "{action.column}" of relation "{table.name}" is an identity column', hint=_identity_hint(action.default)
            )
        check_default(table, action)
        defaults = {n: d for n, d in table.defaults.items() if n != action.column} | default_by_name(target, action.default, self.catalog)
        self.put(replace(table, defaults=defaults))

    def _set_nullable(self, action: SetNullable) -> None:
        target, table = self._column(action.column), self.table
        if action.nullable:
            if action.column in table.identity:
                raise SyntaxError_(f'column "{action.column}" of relation "{table.name}" is an identity column')
            key = constraints.primary_key(table, self.catalog)
            if key is not None and table.columns.index(target) in key.columns:
                raise InvalidTableDefinition(f'column "{action.column}" is in a primary key')
        self._make_nullable(action.column, action.nullable)

    def _make_nullable(self, name: str, nullable: bool) -> None:
        columns = tuple(replace(c, nullable=nullable) if c.name == name else c for c in self.table.columns)
        self.put(replace(self.table, columns=columns))

    def _column(self, name: str) -> Field:
        column = next((c for c in self.table.columns if c.name == name), None)
        if column is None:
            raise UndefinedColumn(f'column "{name}" of relation "{self.table.name}" does not exist')
        return column

    # ---- constraints

    def _add_constraint(self, constraint: Check | Unique | ForeignKey) -> None:
        table = self.table
        names = constraint_names(table, self.catalog)
        match constraint:
            case Check():
                check = placeless(lambda: check_constraint(constraint, table, names, self.catalog.schema_of(table).name))
                checks = sorted((*table.checks, check), key=lambda c: c.name.encode())
                self.put(replace(table, checks=tuple(checks)))
                self.validated |= {check.name} if check.valid else set()
            case Unique():
                if constraint.primary and constraints.primary_key(table, self.catalog) is not None:
                    raise InvalidTableDefinition(f'multiple primary keys for table "{table.name}" are not allowed')
                try:
                    index = unique_index(constraint, table, self.catalog, self.catalog.next_id)
                except UndefinedColumn as error:  # PostgreSQL reports the position of other errors
                    error.position = None
                    raise
                if constraint.index not in (None, index.name):
                    rename = f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{constraint.index}" to "{index.name}"'
                    self.notices.append((rename, "00000"))
                self.put(index)
                for place in index.positions if constraint.primary else ():
                    self._make_nullable(table.columns[place].name, False)
            case ForeignKey():
                altered = placeless(lambda: with_foreign_keys(table, (constraint,), self.catalog))
                self.validated |= {key.name for key in altered.foreign_keys if key not in table.foreign_keys and key.valid}
                self.put(altered)
            case _:
                assert_never(constraint)

    def _drop_constraint(self, action: DropConstraint) -> None:
        name, table = action.name, self.table
        if any(check.name == name for check in table.checks):
            self.put(replace(table, checks=tuple(c for c in table.checks if c.name != name)))
        elif any(key.name == name for key in table.foreign_keys):
            self.put(replace(table, foreign_keys=tuple(k for k in table.foreign_keys if k.name != name)))
        elif (key := next((k for k in constraints.keys_of(table, self.catalog) if k.constraint and k.name == name), None)) is not None:
            self._release_key(key, cascade=action.cascade)
            if key.index:
                self.catalog = self.catalog.apply(Change(drop=(key.index,)))
            else:
                self.put(replace(self.table, key=None, constraint=None, key_comment=""))
        elif action.if_exists:
            self.notices.append((f'constraint "{name}" of relation "{table.name}" does not exist, skipping', "00000"))
        else:
            raise UndefinedObject(f'constraint "{name}" of relation "{table.name}" does not exist')

    def _release_key(self, key: constraints.Key, *, cascade: bool) -> None:
        """Drops the foreign keys that reference a key. Raises 2BP01 without `cascade` if there are any."""
        references = [r for r in constraints.references_to(self.table, self.catalog) if r.key.index == key.index]
        if references and not cascade:
            names = [self.catalog.name_of(r.table).sql for r in references]
            lines = [f"constraint {r.name} on table {n} depends on index {key.name}" for r, n in zip(references, names, strict=True)]
            raise DependentObjectsStillExist(
                f"cannot drop constraint {key.name} on table {self.catalog.name_of(self.table).sql} because other objects depend on it",
                detail="\n".join(lines),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        for reference in references:
            other = self.catalog.expect(Table, reference.table.id)
            self.put(replace(other, foreign_keys=tuple(k for k in other.foreign_keys if k.name != reference.name)))
            self.notices.append((f"drop cascades to constraint {reference.name} on table {self.catalog.name_of(other).sql}", "00000"))

    def _validate(self, name: str) -> None:
        table = self.table
        checks = tuple(replace(c, valid=True) if c.name == name else c for c in table.checks)
        keys = tuple(replace(k, valid=True) if k.name == name else k for k in table.foreign_keys)
        if name not in constraint_names(table, self.catalog):
            raise UndefinedObject(f'constraint "{name}" of relation "{table.name}" does not exist')
        if name not in {*(c.name for c in checks), *(k.name for k in keys)}:
            raise WrongObjectType(f'constraint "{name}" of relation "{table.name}" is not a foreign key or check constraint')
        if (checks, keys) != (table.checks, table.foreign_keys):
            self.put(replace(table, checks=checks, foreign_keys=keys))
            self.validated.add(name)

    def _rename_constraint(self, old: str, new: str) -> None:
        table = self.table
        names = constraint_names(table, self.catalog)
        if old not in names:
            raise UndefinedObject(f'constraint "{old}" for table "{table.name}" does not exist')
        key = next((k for k in constraints.keys_of(table, self.catalog) if k.constraint and k.name == old), None)
        if key is not None:
            self.catalog.check_new(new, self.catalog.schema_of(table))
        if new in names:
            raise DuplicateObject(f'constraint "{new}" for relation "{table.name}" already exists')
        if key is not None and key.index:
            self.put(replace(self.catalog.expect(Index, key.index), name=new))
            return
        checks = sorted((replace(c, name=new) if c.name == old else c for c in table.checks), key=lambda c: c.name.encode())
        keys = [replace(k, name=new) if k.name == old else k for k in table.foreign_keys]
        constraint = new if key is not None else table.constraint
        self.put(replace(table, checks=tuple(checks), foreign_keys=tuple(keys), constraint=constraint))


def _identity_hint(default: str | None) -> str | None:
    return "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead." if default is None else None
