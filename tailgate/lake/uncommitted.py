"""Changes of the catalog that a transaction block has made and not committed.

    DDL in a block ──► the engine plans it over the catalog and the changes so far ──► `including` ──► the session's catalog: `applied`
    COMMIT         ──► the engine: `check`, `renumbered` ──► one entry of the log with the changes and the rows

Optimistic concurrency control, as for rows: a block records the definitions that it changes or relies on. If another transaction has
changed one of them, the block fails with 40001. So it does if another one has changed the privileges on an object on which the block has
changed them, too.

New objects have ids from FIRST_ID on, which are local to the block; COMMIT gives them ids of the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeGuard, TypeVar

from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Sequence, Table, View
from tailgate.lake.catalog.codec import decode, decode_change, encode, encode_change, encode_item
from tailgate.lake.catalog.custom_types import types_of
from tailgate.lake.catalog.dropping import SEQUENCE
from tailgate.lake.catalog.item_fields import ReaderFields, ReplaceableFields, known_columns
from tailgate.lake.catalog.resolution import digest, version
from tailgate.lake.catalog.roles import Access, Role, with_new_ids
from tailgate.lake.errors import DuplicateSchema, SerializationFailure
from tailgate.lake.types import Field, NamedType, Type

FIRST_ID = 1 << 26  # of the objects that a block creates; other ids are below it

# of sequences, as (id, series) → (position, called): ALTER SEQUENCE begins a new series
SequencePositions: TypeAlias = dict[tuple[int, int], tuple[int, bool]]

AnyNamedType = TypeVar("AnyNamedType", bound=NamedType)


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """The changes of one block.

    - `change`: their sum. `next_id`: of the block's next object.
    - `changed`: digests of existing items, schemas and roles that the block changes or drops, by id.
    - `dependents`: the items that depended on these items.
    - `read`: versions of other existing items that the block's items depend on, or on which it changes privileges.
    - `access`: of existing objects on which the block changes privileges, by id, the privileges before; None without GRANTs.
    """

    change: Change = field(default_factory=Change)
    next_id: int = FIRST_ID
    changed: Mapping[int, str] = field(default_factory=dict)
    dependents: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    read: Mapping[int, str] = field(default_factory=dict)
    access: Mapping[int, Access | None] = field(default_factory=dict)

    @property
    def created(self) -> frozenset[int]:
        """Returns the ids of the items that the block has created."""
        return frozenset(item.id for item in self.change.put if is_local(item.id))

    def applied(self, catalog: Catalog) -> Catalog:
        """Returns the catalog as the block sees it. Raises 40001 if the block conflicts with the privileges in it."""
        self._check_access(catalog)
        return replace(catalog.apply(self.change), next_id=self.next_id)

    def including(self, change: Change, catalog: Catalog) -> Uncommitted:
        """Returns the changes with a further one, which was planned over `applied(catalog)`."""
        granted = [each.id for each in change.put_access]
        existing = [*(i.id for i in change.put), *change.drop, *(s.id for s in change.put_schemas), *change.drop_schemas]
        existing += [role.id for role in change.put_roles]
        existing += [id for id in granted if id in catalog.all_schemas()]
        changed = {id: text for id in existing if (text := _digest(catalog, id)) is not None}
        dependents = {id: _dependents(catalog, id) for id in changed if id in catalog.items}
        depends = {*granted, *(id for item in change.put for id in (*item.depends, *referenced(item), *types_of(item)))}
        read = {id: version(catalog[id]) for id in depends if id in catalog.items}
        access = {each.id: catalog.access.get(each.id) for each in change.put_access if not is_local(each.id)}
        ids = [id for item in change.put for id in (item.id, item.errors)] + [schema.id for schema in change.put_schemas]
        return Uncommitted(
            _sum(self.change, replace(change, put=tuple(map(_readable, change.put)))),
            max([self.next_id, *(id + 1 for id in ids if is_local(id))]),
            {**changed, **self.changed},
            {**dependents, **self.dependents},
            {**read, **self.read},
            {**access, **self.access},
        )

    def moved(self, positions: SequencePositions) -> Uncommitted:
        """Returns the changes with the positions of the sequences that the block has created or altered."""
        put = tuple(positioned(item, positions) if isinstance(item, Sequence) else item for item in self.change.put)
        return replace(self, change=replace(self.change, put=put))

    def check(self, catalog: Catalog) -> None:
        """Raises 40001 if another transaction has changed a definition that the block relies on, 42P07 or 42P06 if a name was taken."""
        own = self.change
        for id, before in self.changed.items():
            if _digest(catalog, id) != before:
                raise conflict()
        for id, ids in self.dependents.items():
            if _dependents(catalog, id) != ids:
                raise conflict()
        for id, before in self.read.items():
            if id not in self.changed and (id not in catalog.items or version(catalog[id]) != before):
                raise conflict()
        after = self.applied(catalog)
        schemas = after.all_schemas()
        for item in after.items.values():
            if item.schema not in schemas:
                raise conflict()  # another transaction has dropped the schema, or has created an item in a schema that the block drops
            if any(other not in after.items for other in (*referenced(item), *types_of(item))):
                raise conflict()
        names = {(i.name, i.schema, i.namespace): i for i in catalog.visible if i.id not in own.drop}
        replaced = {item.id for item in own.put}
        for item in own.put:
            other = names.get((item.name, item.schema, item.namespace))
            if other is not None and other.id not in replaced:
                catalog.check_new(item.name, schemas[item.schema], item.namespace)
        for schema in own.put_schemas:
            if any(s.name == schema.name and s.id != schema.id and s.id not in own.drop_schemas for s in after.all_schemas().values()):
                raise DuplicateSchema(f'schema "{schema.name}" already exists')

    def renumbered(self, catalog: Catalog) -> tuple[Change, dict[int, int]]:
        """Returns the change for the catalog, and the new ids of the block's objects."""
        ids = {id: id - FIRST_ID + catalog.next_id for id in range(FIRST_ID, self.next_id)}
        change = self.change
        access = tuple(with_new_ids(each, ids) for each in change.put_access)
        schemas = [replace(schema, id=ids.get(schema.id, schema.id)) for schema in change.put_schemas]
        items = tuple(_renumbered(item, ids) for item in change.put)
        roles = tuple(_role_with_ids(role, ids) for role in change.put_roles)
        return replace(change, put=items, put_roles=roles, put_access=access, put_schemas=tuple(schemas)), ids

    def _check_access(self, catalog: Catalog) -> None:
        """Raises 40001 if others have changed the privileges on an object on which the block changes them."""
        if any(catalog.access.get(id) != before for id, before in self.access.items()):
            raise conflict()

    def to_json(self) -> dict[str, Any]:
        return {
            "change": encode_change(self.change),
            "next_id": self.next_id,
            "changed": {str(id): digest for id, digest in self.changed.items()},
            "dependents": {str(id): list(ids) for id, ids in self.dependents.items()},
            "read": {str(id): version for id, version in self.read.items()},
            "access": {str(id): None if access is None else encode(access) for id, access in self.access.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Uncommitted:
        return Uncommitted(
            decode_change(data["change"]),
            data["next_id"],
            {int(id): digest for id, digest in data["changed"].items()},
            {int(id): tuple(ids) for id, ids in data["dependents"].items()},
            {int(id): version for id, version in data["read"].items()},
            {int(id): None if access is None else decode(Access, access) for id, access in data["access"].items()},
        )


def is_local(id: int) -> bool:
    """Returns whether a block has created the object and has not committed it."""
    return FIRST_ID <= id < 1 << 28


def positioned(sequence: Sequence, positions: SequencePositions) -> Sequence:
    """Returns the sequence at its position, if it has one."""
    position, called = positions.get((sequence.id, sequence.series), (sequence.position, sequence.called))
    return replace(sequence, position=position, called=called)


def referenced(item: Item) -> tuple[int, ...]:
    """Returns the ids of the tables that the foreign keys of an item reference."""
    return tuple(key.table for key in item.foreign_keys) if isinstance(item, Table) else ()


def is_evaluated(item: Item | None) -> TypeGuard[View | MaterializedView]:
    """Returns whether a query evaluates the definition of the item: a plain view, or a materialized view that is not committed."""
    return isinstance(item, View) or (isinstance(item, MaterializedView) and is_local(item.id))


def conflict() -> SerializationFailure:
    """Returns the error of a block that relies on a definition that another transaction has changed."""
    return SerializationFailure("could not serialize access due to concurrent update", hint="The transaction might succeed if retried.")


def _sum(first: Change, second: Change) -> Change:
    """Returns a change with the effect of two, one after the other, without objects that the block has created and dropped."""
    drop, drop_schemas = {*first.drop, *second.drop}, {*first.drop_schemas, *second.drop_schemas}
    items = {i.id: i for i in (*first.put, *second.put) if i.id not in second.drop}
    schemas = {s.id: s for s in (*first.put_schemas, *second.put_schemas) if s.id not in second.drop_schemas}
    removed = {*second.drop, *second.drop_schemas}
    access = {a.id: a for a in (*first.put_access, *second.put_access) if a.id not in removed}
    return Change(
        tuple(items.values()),
        _existing(drop),
        put_roles=tuple({role.id: role for role in (*first.put_roles, *second.put_roles)}.values()),
        put_schemas=tuple(schemas.values()),
        drop_schemas=_existing(drop_schemas),
        put_access=tuple(access.values()),
    )


def _existing(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(id for id in ids if not is_local(id)))


def _digest(catalog: Catalog, id: int) -> str | None:
    """Returns a digest of all that is known of an item, a schema or a role, or None if there is none with this id."""
    if (item := catalog.items.get(id)) is not None:
        return digest(encode_item(item))
    other = catalog.all_schemas().get(id) or catalog.all_roles().get(id)
    return None if other is None else digest(encode(other))


def _dependents(catalog: Catalog, id: int) -> tuple[int, ...]:
    return tuple(sorted(item.id for item in catalog.dependents(id)))


def _readable(item: Item) -> Item:
    """Returns the item as the block sees it: a new materialized view is evaluated as a plain view, and filled after COMMIT."""
    return replace(item, ready=True) if is_local(item.id) else item


def _renumbered(item: Item, ids: Mapping[int, int]) -> Item:
    """Returns the item with the new ids of all objects that it mentions. A new materialized view is not ready: COMMIT fills it."""
    if isinstance(item, MaterializedView) and is_local(item.id):
        item = replace(item, ready=False)
    return with_ids(item, ids)


def _role_with_ids(role: Role, ids: Mapping[int, int]) -> Role:
    """Returns the role with the new ids of the schemas that its default privileges are for."""
    lists = (replace(each, schema=ids.get(each.schema, each.schema)) for each in role.default_privileges)
    return replace(role, default_privileges=tuple(lists))


def with_ids(item: Item, ids: Mapping[int, int]) -> Item:
    """Returns the item with new ids of the objects that it mentions, also its own."""

    def new(id: int) -> int:
        return ids.get(id, id)

    item = replace(item, id=new(item.id), errors=new(item.errors), depends=tuple(map(new, item.depends)), schema=new(item.schema))
    item = replace(item, columns=_columns_with_ids(item.columns, ids))
    if isinstance(item, ReaderFields):
        item = replace(item, known_columns={new(id): count for id, count in known_columns(item).items()})
    if isinstance(item, ReplaceableFields):
        item = replace(item, group=new(item.group))
    if isinstance(item, Table):
        texts = {c: SEQUENCE.sub(lambda match: f"'{new(int(match[1]))}'::regclass", text) for c, text in item.defaults.items()}
        keys = tuple(replace(key, table=new(key.table)) for key in item.foreign_keys)
        item = replace(item, defaults=texts, foreign_keys=keys)
    return item


def _with_id(type: Type, ids: Mapping[int, int]) -> Type:
    """Returns the type with the new ids of its enum and composite types."""
    enum, composite = _named_with_id(type.enum, ids), _named_with_id(type.composite, ids)
    return replace(type, enum=enum, composite=composite, fields=_columns_with_ids(type.fields, ids))


def _columns_with_ids(columns: tuple[Field, ...], ids: Mapping[int, int]) -> tuple[Field, ...]:
    return tuple(replace(c, type=_with_id(c.type, ids), domain=_named_with_id(c.domain, ids)) for c in columns)


def _named_with_id(named: AnyNamedType | None, ids: Mapping[int, int]) -> AnyNamedType | None:
    return None if named is None else replace(named, id=ids.get(named.id, named.id))
