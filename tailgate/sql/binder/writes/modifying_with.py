"""WITH whose parts write, bound against the catalog. Each part is bound like a statement; its RETURNING is a relation for later parts.

A query with volatile functions is a part, too, because it is evaluated once. Other queries are evaluated where they are read.

Source: PostgreSQL 15, section 7.8.4, "Data-Modifying Statements in WITH"; src/backend/parser/parse_cte.c.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.authorization import Demand, merged
from tailgate.sql.binder.context import Level
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.writes.merges import Merges
from tailgate.sql.decorrelate import decorrelate
from tailgate.sql.numeric_types import WITH_GENERAL, typed_by
from tailgate.sql.plan import Column, Project, Relation, Scan
from tailgate.sql.plan.null_folding import fold_nulls
from tailgate.sql.plan.properties import is_volatile
from tailgate.sql.plan.writes import PLACE, RETURNED, ChangeRows, InsertRows, MergeRows, WithRows
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import CurrentOf, Delete, Insert, Merge, Update, WithWrites


class ModifyingWith(Merges):
    """The binder of one WITH whose parts write. All parts share the parameters."""

    @typed_by(WITH_GENERAL)
    def with_writes(self, statement: WithWrites) -> WithRows:
        """Binds the parts in order, then the query or statement behind them."""
        parts: list[tuple[str, InsertRows | ChangeRows | Relation]] = []

        def bind(part: object, name: str, names: Names) -> Relation:
            if isinstance(part, Insert | Update | Delete):
                rows = self._within(names)._written(part)
                assert not isinstance(rows, MergeRows)
                columns = () if rows.returning is None else rows.returning.columns
                parts.append((name, rows))
            else:
                assert isinstance(part, Relation)
                query = fold_nulls(decorrelate(part))
                if not is_volatile(query):
                    return part
                columns = query.columns
                parts.append((name, query))
            scan = Scan(RETURNED + len(parts) - 1, (*columns, PLACE), (len(columns),), name)
            return Project(scan, tuple(Column(i, f.type) for i, f in enumerate(columns)), columns)

        names = self.queries.ctes(statement.ctes, self.names, bind)
        body: Relation | InsertRows | ChangeRows | MergeRows
        if isinstance(statement.body, QueryText):
            body = fold_nulls(decorrelate(self.queries.query(statement.body.tree, names)))
            demands: tuple[Demand, ...] = ()
        else:
            body = self._within(names)._written(statement.body)
            demands = body.demands
        writes = [rows for _, rows in parts if isinstance(rows, InsertRows | ChangeRows)]
        own = (demand for rows in writes for demand in rows.demands)
        return WithRows(tuple(parts), body, self._types(), merged((*own, *demands, *names.demanded())))

    def _within(self, names: Names) -> ModifyingWith:
        """Returns the binder of a statement that can read these names."""
        binder = copy(self)
        binder.names = replace(names)
        binder.level = Level(self.queries, binder.names)
        return binder

    def _written(self, statement: Insert | Update | Delete | Merge) -> InsertRows | ChangeRows | MergeRows:
        """Binds a statement. Raises 0A000 for WHERE CURRENT OF."""
        if isinstance(statement, Update | Delete) and isinstance(statement.where, CurrentOf):
            raise FeatureNotSupported("WHERE CURRENT OF in a WITH whose parts write is not supported", hint="Use several statements.")
        match statement:
            case Insert():
                return self.insert(statement)
            case Update():
                return self.update(statement)
            case Delete():
                return self.delete(statement)
            case Merge():
                return self.merge(statement)
