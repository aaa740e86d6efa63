"""Plans a statement that changes the catalog, without carrying it out: the statement and a catalog become a change.

outside a block   plan ──► `Installation.install`
in a block        plan over the catalog and the block's changes ──► the changes with those of the statement, for the session
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from typing_extensions import assert_never

from tailgate.engine import ddl
from tailgate.engine.ddl.ksqldb import check_inserts, check_no_queries, create_type, drop_type, filled_again
from tailgate.engine.plan.views.labels import printing
from tailgate.engine.plan.views.replacements import readers
from tailgate.engine.runtime.control.blocks.tags import tag_of
from tailgate.engine.runtime.control.control import notice
from tailgate.engine.runtime.control.new_items import Creation, NewItems, existing
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, Change, DroppedWithOwner, Item, MaterializedView
from tailgate.lake.catalog.roles import OPERATOR, Role
from tailgate.lake.control import StatementRequest
from tailgate.lake.errors import ActiveSqlTransaction, DuplicateTable, FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.uncommitted import is_local
from tailgate.sql.new_items import with_article
from tailgate.sql.sequence_definitions import create_sequence
from tailgate.sql.statements import (
    AlterDefaultPrivileges,
    AlterDomain,
    AlterFunction,
    AlterItem,
    AlterKsqldbItem,
    AlterSchema,
    AlterSequence,
    AlterSettings,
    AlterTable,
    AlterType,
    Comment,
    CommentOnFunction,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateFunction,
    CreateIndex,
    CreateKsqldbItem,
    CreateKsqldbType,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateView,
    Drop,
    DropFunction,
    DropKsqldbType,
    DropOwned,
    DropSchema,
    Grant,
    InsertStream,
    ReassignOwned,
    RenameValue,
    Statement,
    parse,
)
from tailgate.sql.statements.kinds import kind_of
from tailgate.sql.tables.domains import DomainAlteration, create_domain
from tailgate.sql.tables.domains import alteration as alter_domain
from tailgate.sql.tables.indexes import create_index

Dropping = Drop | DropFunction | DropSchema
Altering = (
    AlterItem
    | AlterFunction
    | AlterType
    | AlterDomain
    | AlterSequence
    | AlterSchema
    | CreateSchema
    | Comment
    | CommentOnFunction
    | ddl.RoleStatement
)
TypeStatement = CreateEnum | CreateComposite | CreateDomain | CreateKsqldbType | DropKsqldbType
Defining = Creation | AlterKsqldbItem | TypeStatement | CreateIndex | CreateSequence | AlterTable | Dropping | Altering

# the statements that a transaction block may contain: they change the catalog and nothing else
IN_BLOCKS = (
    CreateView | CreateTable | CreateFunction | CreateIndex | CreateSequence | AlterSequence | AlterTable | Dropping | AlterItem
    | AlterFunction | AlterSchema | CreateSchema | Comment | CommentOnFunction | Grant | CreateEnum | CreateComposite | AlterType
    | CreateDomain | DropOwned | ReassignOwned | AlterSettings | AlterDefaultPrivileges
)  # fmt: skip
BLOCK_KINDS = ("table", "view", "materialized view", "index", "sequence", "type", "domain")  # of objects that a block may drop or alter


@dataclass(frozen=True, slots=True)
class Planned:
    """The change of a statement. `tag`: its command tag. `changes_plans`: views that read the items may have to be filled again.

    `changed_rows`: views that must be filled again because their rows are other ones.
    """

    tag: str
    change: Change = field(default_factory=Change)
    notices: tuple[dict[str, Any], ...] = ()
    changes_plans: bool = False
    changed_rows: tuple[MaterializedView, ...] = ()

    @property
    def views(self) -> tuple[Item, ...]:
        """Returns the items that are backfilled after the change."""
        return tuple(item for item in self.change.put if not item.ready)


class Planning:
    """Plans statements. Asks brokers and registries about sources and connections. Thread safe."""

    def __init__(self, engine: Engine, new_items: NewItems) -> None:
        self._engine, self._new_items = engine, new_items

    def plan(self, statement: Defining, text: str, catalog: Catalog, creator: str | None, *, in_block: bool = False) -> Planned:
        """Returns the change of a statement over a catalog that knows the statement's names. `in_block`: the gateway checks the rows."""
        planned = self._plan(statement, text, catalog, creator, in_block=in_block)
        planned = replace(planned, change=ddl.with_default_privileges(planned.change, catalog))
        ddl.check_types(planned.change.put, acting_role(creator, catalog), catalog)
        return planned

    def _plan(self, statement: Defining, text: str, catalog: Catalog, creator: str | None, *, in_block: bool) -> Planned:
        tag = tag_of(statement)
        match statement:
            case CreateIndex():
                index, notices = create_index(statement, catalog)
                if index is not None and index.enforced and not in_block:
                    raise FeatureNotSupported("a unique index of a table needs the check of its rows")
                return Planned(tag, Change() if index is None else Change(put=(index,)), tuple(map(asdict, notices)))
            case CreateSequence():
                if (old := existing(statement.name, catalog)) is not None and statement.if_not_exists:
                    return Planned(tag, notices=(_skipping(old),))
                return Planned(tag, Change(put=(create_sequence(statement, catalog, owner_id(creator, catalog)),)))
            case AlterSequence():
                return _planned(tag, *ddl.alter_sequence(statement, catalog))
            case AlterTable():
                altered, change = ddl.alter_table(statement, catalog)
                if (
                    in_block
                    and altered.changes_plans
                    and any(isinstance(i, MaterializedView) for i in readers([altered.before.id], catalog))
                ):
                    raise ActiveSqlTransaction(
                        "a change of NOT NULL in a transaction block is not supported for a table below a materialized view",
                        hint="Run ALTER TABLE outside a transaction block.",
                    )
                return Planned(tag, change, tuple(notice(message, sqlstate) for message, sqlstate in altered.notices))
            case AlterKsqldbItem(statement=added):
                return Planned(tag, Change(put=self._new_items.with_columns(added, catalog)), changes_plans=True)
            case _ if isinstance(statement, TypeStatement | AlterType | AlterDomain):
                planned = _types(statement, text, catalog, owner_id(creator, catalog))
                if in_block and isinstance(statement, AlterType):
                    _check_labels(planned.change, catalog)
                return planned
            case Drop():
                check_no_queries(statement, catalog)
                planned = _planned(tag, *ddl.drop(statement, catalog))
                check_inserts(planned.change, catalog)
                return planned
            case DropFunction():
                return _planned(tag, *ddl.drop_function(statement, catalog))
            case DropSchema():
                planned = _planned(tag, *ddl.drop_schemas(statement, catalog))
                check_inserts(planned.change, catalog)
                return planned
            case AlterItem():
                return _planned(tag, *ddl.alter(statement, catalog))
            case AlterFunction():
                return Planned(tag, ddl.alter_function(statement, catalog))
            case CreateSchema():
                return _planned(tag, *ddl.create_schema(statement, creator, catalog))
            case AlterSchema():
                return Planned(tag, ddl.alter_schema(statement, catalog))
            case Comment() | CommentOnFunction():
                return Planned(tag, _commented(statement, catalog))
            case _ if isinstance(statement, ddl.RoleStatement):
                planned = _planned(tag, *ddl.change_roles(statement, acting_role(creator, catalog), catalog))
                check_inserts(planned.change, catalog)
                return planned
            case _:
                return self._create(statement, text, catalog, owner_id(creator, catalog))

    def _create(self, statement: Creation, text: str, catalog: Catalog, owner: int) -> Planned:
        """Returns the items of a CREATE statement. Views among them are not prepared for their fill."""
        tag = tag_of(statement)
        old = None if isinstance(statement, CreateFunction) else existing(statement.name, catalog)
        if old is not None and not isinstance(statement, CreateFunction | InsertStream) and statement.if_not_exists:
            return Planned(tag, notices=(_skipping(old),))
        if old is not None and isinstance(statement, CreateKsqldbItem) and statement.statement.replace:
            items = self._new_items.upgraded(statement, text, catalog, old)
            ddl.check_definitions(items, catalog)
            return Planned(tag, Change(put=items), changes_plans=True, changed_rows=filled_again(items, catalog))
        items = self._new_items.of(statement, text, catalog, owner, old)
        ddl.check_definitions(items, catalog)
        return Planned(tag, Change(put=items))

    # ---- in a block ------------------------------------------------------------------------------

    def plan_in_block(self, request: StatementRequest) -> dict[str, Any]:
        """Returns the answer of `POST /statement` for a statement of a block: the block's changes with those of the statement.

        Raises 40001 if another transaction has changed a definition that the block relies on.
        """
        assert request.block is not None
        newest, committed, block = self._engine.newest, self._engine.catalog, request.block
        block.check(committed)
        catalog = block.applied(committed).with_resolution(request.resolution)
        statement = parse(request.sql)
        if not isinstance(statement, IN_BLOCKS) or (isinstance(statement, Drop | AlterItem) and statement.kind not in BLOCK_KINDS):
            raise ActiveSqlTransaction(f"{_name(statement)} cannot run inside a transaction block")
        planned = self.plan(statement, request.sql, catalog, request.settings.get("role"), in_block=True)
        check_in_block(planned.change)
        if isinstance(statement, DropOwned | ReassignOwned):
            _check_kinds(planned.change, catalog, _name(statement))
        changed = block.including(planned.change, committed)
        notices = list(planned.notices)
        return {"tag": planned.tag, "n": newest.n, "time": newest.time, "notices": notices, "block": changed.to_json()}


def _commented(statement: Comment | CommentOnFunction, catalog: Catalog) -> Change:
    if isinstance(statement, CommentOnFunction):
        return ddl.comment_on_function(statement, catalog)
    return (ddl.comment_on_role if statement.kind in ("role", "database") else ddl.comment)(statement, catalog)


def _types(statement: TypeStatement | AlterType | AlterDomain, text: str, catalog: Catalog, owner: int) -> Planned:
    """Returns the change of a statement about types and domains."""
    tag = tag_of(statement)
    match statement:
        case CreateEnum():
            return Planned(tag, ddl.create_enum(statement, catalog, owner))
        case CreateComposite():
            return Planned(tag, ddl.create_composite(statement, catalog, owner))
        case AlterType(action=action):
            planned = replace(_planned(tag, *ddl.alter_type(statement, catalog)), changes_plans=True)
            if not isinstance(action, RenameValue):
                return planned
            return replace(planned, changed_rows=printing(catalog.stored, catalog.stored.apply(planned.change)))
        case CreateDomain():
            return Planned(tag, create_domain(statement, catalog, owner))
        case AlterDomain():
            altered = alter_domain(statement, catalog)
            if altered.concerns_rows:
                raise FeatureNotSupported("a new constraint of a domain needs the check of the rows of tables")
            return domain_change(altered, catalog)
        case CreateKsqldbType():
            return _planned(tag, *create_type(statement, text, catalog, owner))
        case DropKsqldbType():
            return _planned(tag, *drop_type(statement, catalog))
        case _:
            assert_never(statement)


def _check_labels(change: Change, catalog: Catalog) -> None:
    """Raises 25001 if a change of an enum type in a block changes the plan of a materialized view."""
    for view in printing(catalog.stored, catalog.stored.apply(change)):
        raise ActiveSqlTransaction(
            f'changing an enum type in a transaction block is not supported if materialized view "{view.name}" reads or writes its labels',
            hint="Run ALTER TYPE outside a transaction block.",
        )


def domain_change(altered: DomainAlteration, catalog: Catalog) -> Planned:
    """Returns the change of ALTER DOMAIN, with the views that cast to the domain."""
    changed = printing(catalog.stored, catalog.stored.apply(altered.change))
    notices = tuple(notice(message, sqlstate) for message, sqlstate in altered.notices)
    return Planned("ALTER DOMAIN", altered.change, notices, changes_plans=True, changed_rows=changed)


def _check_kinds(change: Change, catalog: Catalog, statement: str) -> None:
    """Raises 25001 if a statement about all objects of a role concerns one that a block may not drop or alter."""
    for item in (*change.put, *(catalog.items[id] for id in change.drop if id in catalog.items)):
        if item.kind not in (*BLOCK_KINDS, "function", "enum", "composite") and not isinstance(item, DroppedWithOwner):
            raise ActiveSqlTransaction(f"{statement} of {with_article(item.kind)} cannot run inside a transaction block")


def check_in_block(change: Change) -> None:
    """Raises 25001 or 55000 for a change that cannot be a part of a block."""
    for item in change.put:
        if item.replaces:
            raise ActiveSqlTransaction(
                f'replacing "{item.name}" in a transaction block is not supported, because a view has to be filled again',
                hint="Run CREATE OR REPLACE outside a transaction block.",
            )
        if not item.ready and not is_local(item.id):
            raise ObjectNotInPrerequisiteState(f'{item.kind} "{item.name}" is still being filled', hint="Try again when it is ready.")


def _planned(tag: str, change: Change, notices: list[dict[str, Any]]) -> Planned:
    return Planned(tag, change, tuple(notices))


def _skipping(old: Item) -> dict[str, Any]:
    return notice(f'relation "{old.name}" already exists, skipping', DuplicateTable.sqlstate)


def _name(statement: Statement) -> str:
    """Returns the name of a statement for messages."""
    return tag_of(statement) or next(iter(kind_of(statement).parsers), "this statement")


def acting_role(name: str | None, catalog: Catalog) -> Role:
    """Returns the role that executes a statement."""
    return catalog.role(name) if name else OPERATOR


def owner_id(creator: str | None, catalog: Catalog) -> int:
    """Returns the id of the role that will own a new item."""
    return acting_role(creator, catalog).id
