"""CREATE DOMAIN and ALTER DOMAIN: the items of domains, for the engine, and for the gateway, which checks the rows of tables.

Source: PostgreSQL 15, src/backend/commands/typecmds.c (DefineDomain, AlterDomainDefault, AlterDomainNotNull, AlterDomainAddConstraint,
AlterDomainDropConstraint, AlterDomainValidateConstraint, validateDomainConstraint); pg_constraint.c (RenameConstraintById).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from typing_extensions import assert_never

from tailgate.lake.catalog import Catalog, Change, Domain, Table
from tailgate.lake.catalog.custom_types import types_of_column
from tailgate.lake.catalog.formats import CheckConstraint
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.catalog.schemas import SCHEMA
from tailgate.lake.errors import DuplicateObject, UndefinedObject, WrongObjectType
from tailgate.lake.types import DomainType, Field
from tailgate.sql.binder.domains import VALUE
from tailgate.sql.binder.writes.targets import default_of, domain_conditions
from tailgate.sql.new_items import known_domain
from tailgate.sql.statements import (
    AddConstraint,
    AlterDomain,
    Check,
    CreateDomain,
    DropConstraint,
    NewOwner,
    RenameConstraint,
    SetDomainDefault,
    SetDomainNotNull,
    ValidateConstraint,
)
from tailgate.sql.tables.defaults import placeless
from tailgate.sql.tables.definition import column_type
from tailgate.sql.tables.names import free_name


@dataclass(frozen=True, slots=True)
class DomainAlteration:
    """The result of ALTER DOMAIN. `notices`: as (message, SQLSTATE).

    `not_null`, `validated`: whether existing rows must be not null, and the name of the check that they must satisfy, or None.
    """

    before: Domain
    after: Domain
    notices: tuple[tuple[str, str], ...] = ()
    not_null: bool = False
    validated: str | None = None

    @property
    def change(self) -> Change:
        return Change(put=(self.after,)) if self.after != self.before else Change()

    @property
    def concerns_rows(self) -> bool:
        """Returns whether existing rows must satisfy a constraint."""
        return self.not_null or self.validated is not None


def create_domain(statement: CreateDomain, catalog: Catalog, owner: int) -> Change:
    """Returns the change of CREATE DOMAIN. Raises 42710, 42704, 42804, and the errors of the expressions."""
    name, schema = statement.name.name, catalog.home(statement.name)
    type, below = known_domain(statement.type, catalog)
    catalog.check_new(name, schema, "type")
    default = statement.default if statement.default is not None or below is None else below.default
    base = Field(VALUE, type, domain=below)
    depends = types_of_column(base)
    item = Domain(
        catalog.next_id,
        name,
        (base,),
        depends=depends,
        schema=schema.id,
        owner=owner,
        default=default,
        not_null=statement.not_null,
    )
    _check_default(item)
    for check in statement.checks:
        item = _with_check(item, check, explicit=[c.name for c in statement.checks])
    return Change(put=(replace(item, sql=definition(item, schema.name)),))


def alteration(statement: AlterDomain, catalog: Catalog) -> DomainAlteration:
    """Returns the result of ALTER DOMAIN. Raises 42704, 42809, 42710, 42804, and the errors of the expressions."""
    before = domain_to_alter(statement.name, catalog)
    notices: tuple[tuple[str, str], ...] = ()
    not_null, validated = False, None
    match statement.action:
        case NewOwner(role=role):
            return DomainAlteration(before, replace(before, owner=catalog.role(role).id))
        case SetDomainDefault(default=default):
            after = replace(before, default=default)
            _check_default(after)
        case SetDomainNotNull(not_null=required):
            after, not_null = replace(before, not_null=required), required and not before.not_null
        case AddConstraint(constraint=Check() as check):
            after = _with_check(before, check)
            new = next(c for c in after.checks if c not in before.checks)
            validated = new.name if new.valid else None
        case AddConstraint():
            raise AssertionError(statement)  # the parser refuses other constraints
        case DropConstraint(name=name, if_exists=if_exists):
            after = replace(before, checks=tuple(c for c in before.checks if c.name != name))
            if after == before:
                message = f'constraint "{name}" of domain "{before.name}" does not exist'
                if not if_exists:
                    raise UndefinedObject(message)
                notices = ((f"{message}, skipping", "00000"),)
        case ValidateConstraint(name=name):
            if name not in [c.name for c in before.checks]:
                raise UndefinedObject(f'constraint "{name}" of domain "{before.name}" does not exist')
            after = replace(before, checks=tuple(replace(c, valid=True) if c.name == name else c for c in before.checks))
            validated = name if after != before else None
        case RenameConstraint(constraint=old, name=new_name):
            names = [c.name for c in before.checks]
            if old not in names:
                raise UndefinedObject(f'constraint "{old}" for domain {before.name} does not exist')
            if new_name in names:
                raise DuplicateObject(f'constraint "{new_name}" for domain {before.name} already exists')
            after = replace(before, checks=_sorted(replace(c, name=new_name) if c.name == old else c for c in before.checks))
        case _:
            assert_never(statement.action)
    after = replace(after, sql=definition(after, catalog.schema_of(after).name))
    return DomainAlteration(before, after, notices, not_null, validated)


def domain_to_alter(name: Name, catalog: Catalog) -> Domain:
    """Returns the domain with this name. Raises 42704, 42809."""
    item = catalog.find(name, "type")
    if item is None:
        catalog.check_schema(name)
        raise UndefinedObject(f'type "{name}" does not exist')
    if not isinstance(item, Domain):
        raise WrongObjectType(f"{name} is not a domain")
    return item


def concerned_columns(altered: DomainAlteration, catalog: Catalog) -> tuple[tuple[Table, int], ...]:
    """Returns the columns of tables of the altered domain and of domains that are based on it, as they are after the alteration."""
    after, domains = catalog.apply(altered.change), {altered.before.id}
    for item in sorted(after.each(Domain), key=lambda domain: domain.id):  # a domain is newer than the one that it is based on
        if item.base.domain is not None and item.base.domain.id in domains:
            domains.add(item.id)
    return tuple(
        (table, i)
        for table in after.each(Table)
        for i, column in enumerate(table.columns)
        if not column.is_dropped and column.domain is not None and column.domain.id in domains
    )


def definition(item: Domain, schema: str) -> str:
    """Returns the CREATE DOMAIN statement of a domain. `schema`: the name of its schema."""
    name = Name(item.name, None if schema == SCHEMA else schema).sql
    default = f" DEFAULT {item.default}" if item.default is not None else ""
    checks = "".join(f" CONSTRAINT {quoted(c.name)} CHECK ({c.text})" for c in item.checks)
    return f"CREATE DOMAIN {name} AS {column_type(item.base)}{default}{' NOT NULL' * item.not_null}{checks}"


def _with_check(domain: Domain, check: Check, explicit: Iterable[str | None] = ()) -> Domain:
    """Returns the domain with one more check. Raises 42710. `explicit`: the names of checks in the statement."""
    names = {c.name for c in domain.checks}
    name = check.name or free_name(domain.name, "", "check", {*names, *explicit}.__contains__)
    if name in names:
        raise DuplicateObject(f'constraint "{name}" for domain "{domain.name}" already exists')
    alone = DomainType(domain.id, domain.name, "", checks=((name, check.text),))
    placeless(lambda: domain_conditions(replace(domain.base, domain=alone)))
    new = CheckConstraint(name=name, text=check.text, columns=(), valid=check.valid)
    return replace(domain, checks=_sorted((*domain.checks, new)))


def _sorted(checks: Iterable[CheckConstraint]) -> tuple[CheckConstraint, ...]:
    """Returns checks in the order of their evaluation."""
    return tuple(sorted(checks, key=lambda check: check.name.encode()))


def _check_default(domain: Domain) -> None:
    """Raises 42804 and others for a default that is not possible."""
    placeless(lambda: default_of(Field(domain.name, domain.base.type), domain.default))
