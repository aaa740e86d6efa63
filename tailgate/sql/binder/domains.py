"""Binds casts to domains, and the conditions of domains.

    value::domain  ──►  CASE WHEN value IS NULL THEN error WHEN NOT condition THEN error … ELSE value END

The condition is bound once over the column VALUE, and the value takes its place.

Source: PostgreSQL 15, src/backend/executor/execExprInterp.c (ExecEvalConstraintNotNull, ExecEvalConstraintCheck),
src/backend/utils/cache/typcache.c (load_domaintype_info).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Composite, Domain, Enum, UserType
from tailgate.lake.catalog.formats import CheckConstraint
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.roles import SCHEMA_ID
from tailgate.lake.catalog.schemas import SCHEMA, Schema
from tailgate.lake.errors import CheckViolation, FeatureNotSupported, NotNullViolation, TailgateError
from tailgate.lake.types import DomainType, Field, Type
from tailgate.sql.authorization import TYPE, Demand
from tailgate.sql.binder import scope as scopes
from tailgate.sql.binder.context import ExpressionBinder, Level
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.types.enums import duckdb_literal, spark_literal
from tailgate.sql.functions.entry import Function
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_expression
from tailgate.sql.plan import Call, Case, IsNull, Not, Scalar
from tailgate.sql.plan.rewriting import substituted, walk
from tailgate.sql.time_zones import UTC, in_zone

VALUE = "value"  # the name of the value in a condition
CLAUSE = "check constraints"


def domain_type(binder: ExpressionBinder, name: Name, at: int | None) -> tuple[Type, DomainType] | None:
    """Returns the base type and the domain with this name, or None. Records that the text names it."""
    names = binder.level.names
    item = names.catalog.find_domain(name)
    if item is None:
        return None
    if item.id not in names.used:
        names.used.append(item.id)
    if at is not None:
        names.places[at] = item.id
    names.demand(Demand(TYPE, item.id, names.readers))
    return item.base.type, item.type(names.catalog.schema_of(item).name)


def in_domain(binder: ExpressionBinder, value: Scalar, domain: DomainType, at: int | None) -> Scalar:
    """Returns a value of the base type of a domain, checked by its constraints. Raises 0A000 for a volatile value."""
    if any(isinstance(part, Call) and part.function.volatility == "volatile" for part in walk(value)):
        hint = "Compute the value in a subquery."
        raise FeatureNotSupported("casting a volatile expression to a domain is not supported", hint=hint, position=at)
    branches: list[tuple[Scalar, Scalar]] = [(IsNull(value), _error(null_violation(domain), value.type))] if domain.not_null else []
    for name, condition in conditions(binder, domain, value.type):
        checked = substituted(condition, (value,))
        branches.append((Not(checked), _error(check_violation(domain, name), value.type)))
    return binder.level.queries.sizes.check(Case(tuple(branches), value, value.type)) if branches else value


def conditions(binder: ExpressionBinder, domain: DomainType, base: Type) -> tuple[tuple[str, Scalar], ...]:
    """Returns the names and conditions of the checks of a domain, over a relation with the value as its only column."""
    columns = (Field(VALUE, base),)
    level = Level(binder.level.queries, Names(types_of(columns)))
    inside = replace(binder, scope=scopes.of(domain.name, columns), level=level, aggregates=False)
    return tuple((name, condition(inside, text)) for name, text in domain.checks)


@in_zone(UTC)
def condition(binder: ExpressionBinder, text: str) -> Scalar:
    """Returns the condition of a check. `binder`: of the columns that it may read. Raises 0A000."""
    tree = parse_expression(text)
    if (inner := next(tree.find_all(exp.Select), None)) is not None:
        raise FeatureNotSupported("cannot use subquery in check constraint", position=position(inner.parent or inner))
    return binder.within(CLAUSE).boolean(tree, "CHECK")


def null_violation(domain: DomainType) -> NotNullViolation:
    """Returns the error for NULL in a domain that does not allow it."""
    return NotNullViolation(f"domain {domain.sql} does not allow null values", names={"s": domain.schema, "d": domain.name})


def check_violation(domain: DomainType, constraint: str) -> CheckViolation:
    """Returns the error for a value that violates a check of a domain."""
    message = f'value for domain {domain.sql} violates check constraint "{constraint}"'
    return CheckViolation(message, names={"s": domain.schema, "d": domain.name, "n": constraint})


def _error(error: TailgateError, type: Type) -> Scalar:
    """Returns a scalar of a type that raises an error when it is evaluated."""
    spark = f"CAST(raise_error({spark_literal(chr(1) + error.sqlstate + error.message)}) AS {{type}})"
    duckdb = f"CAST(error({duckdb_literal(f'[{error.sqlstate}] {error.message}')}) AS {{type}})"
    return Call(Function("domain_violation", (), "any", spark, duckdb, strict=False), (), type)


def types_of(columns: tuple[Field, ...]) -> Catalog:
    """Returns a catalog with the enum types, composite types and domains of columns, in a search path with their schemas."""
    types = [type for c in columns for type in c.type.named]
    domains = {c.domain.id: (c.domain, c.type) for c in columns if c.domain is not None}
    user_types = (*(type.enum or type.composite for type in types), *(domain for domain, _ in domains.values()))
    names = dict.fromkeys(type.schema for type in user_types if type is not None)
    schemas = {name: SCHEMA_ID if name == SCHEMA else number for number, name in enumerate(names, 1)}
    items: dict[int, UserType] = {}
    for type in types:
        if (enum := type.enum) is not None:
            items[enum.id] = Enum(enum.id, enum.name, schema=schemas[enum.schema], labels=enum.labels)
        elif (composite := type.composite) is not None:
            items[composite.id] = Composite(composite.id, composite.name, type.fields, schema=schemas[composite.schema])
    for domain, base in domains.values():
        items[domain.id] = Domain(
            domain.id,
            domain.name,
            (Field(VALUE, base),),
            schema=schemas[domain.schema],
            default=domain.default,
            not_null=domain.not_null,
            checks=tuple(CheckConstraint(name=name, text=text, columns=()) for name, text in domain.checks),
        )
    return Catalog(items=items, schemas={number: Schema(number, name) for name, number in schemas.items()}, path=tuple(schemas))
