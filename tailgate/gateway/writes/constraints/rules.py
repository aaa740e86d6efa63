"""The rules of `sql.plan.writes.TableRules` with their queries rendered as DuckDB SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tailgate.gateway.writes.rows.query import Query, inline, numbered, query_of
from tailgate.lake.catalog import Table
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.types import Field
from tailgate.sql.plan import Relation
from tailgate.sql.plan.writes import INCOMING, DomainCheck, TableRules

Checks: TypeAlias = tuple[tuple[str, Query], ...]
IsDeferred: TypeAlias = Callable[[int, Key | Reference], bool]  # whether COMMIT checks a constraint of the table with an id


def immediate(table: int, constraint: Key | Reference) -> bool:
    """Returns False: outside a block, no check is deferred."""
    return False


@dataclass(frozen=True, slots=True)
class Rules:
    """A rendered `TableRules`."""

    table: Table
    checks: Checks
    keys: tuple[Key, ...]
    references: tuple[Reference, ...]
    referring: tuple[tuple[Reference, Query | None], ...]
    version: str
    generated: Query | None = None
    domains: tuple[tuple[DomainCheck, Query], ...] = ()
    key_values: Query | None = None

    @property
    def asks_session(self) -> bool:
        """Returns whether a check depends on the session, so sessions cannot share its evaluation."""
        return any(query.session_values for _, query in (*self.checks, *self.domains))

    @property
    def fields(self) -> tuple[Field, ...]:
        """Returns the columns that `Key` numbers."""
        return self.table.columns if self.key_values is None else self.key_values.columns

    def with_key_values(self, stored: str, key: Key) -> str:
        """Returns SQL for rows of the table, given as SQL, with the columns that the key needs."""
        if self.key_values is None or not key.is_computed(len(self.table.columns)):
            return stored
        return f"(WITH r{INCOMING} AS (SELECT * FROM {stored}) {self.key_values.sql})"

    @property
    def relations(self) -> frozenset[int]:
        """Returns the tables that foreign keys lead to, in both directions."""
        return frozenset(r.referenced.id for r in self.references) | {r.table.id for r, _ in self.referring}


RulesByTable: TypeAlias = Mapping[int, Rules]  # of a written table, and of those that referential actions may change


def rendered(rules: tuple[TableRules, ...], parameters: int, *, compact: bool) -> RulesByTable:
    """Renders the rules of a statement. `parameters`: the number of its parameters. `compact`: as for `query_of`."""

    def query(relation: Relation) -> Query:
        return numbered(relation, parameters, compact=compact)

    return {
        r.table.id: Rules(
            r.table,
            tuple((name, query(forbidden)) for name, forbidden in r.checks),
            r.keys,
            r.references,
            tuple((reference, None if row is None else query(row)) for reference, row in r.referring),
            r.version,
            None if r.generated is None else query_of(r.generated, compact=compact),
            tuple((check, query(check.forbidden)) for check in r.domains),
            None if r.key_values is None else inline(r.key_values),
        )
        for r in rules
    }


def without_references(rules: RulesByTable) -> RulesByTable:
    """Returns the rules without foreign keys."""
    return {id: replace(r, references=(), referring=()) for id, r in rules.items()}


def size(rules: RulesByTable) -> int:
    """Returns the memory of the rendered checks and generated columns, in bytes."""
    queries = [query for r in rules.values() for _, query in (*r.checks, *r.domains)]
    queries += [query for r in rules.values() for query in (r.generated, r.key_values) if query is not None]
    return sum(query.size for query in queries)


def relations(rules: RulesByTable) -> frozenset[int]:
    """Returns the tables whose rows the rules may need."""
    return frozenset(rules).union(*(r.relations for r in rules.values()))
