"""Random bound plans, made without a binder.

They have shapes that SQL does not produce, such as outer joins without an equality.
"""

from __future__ import annotations

import random
from decimal import Decimal

from tailgate.lake.types import BOOL, INT4, INT8, TEXT, Field, Type, numeric
from tailgate.sql import plan
from tailgate.sql.functions.entry import Function

DECIMAL, WIDE = Type("numeric", (10, 2)), Type("numeric", (14, 4))
TYPES = (INT4, TEXT, DECIMAL, BOOL)


def operator(sign: str, type: Type, result: Type = BOOL) -> Function:
    return Function(sign, (type.name, type.name), result.name, "", "", kind="operator")


def aggregate(name: str, argument: Type | None, result: Type) -> Function:
    return Function(name, () if argument is None else (argument.name,), result.name, "", "", kind="aggregate", strict=False)


class Plans:
    """A generator of plans over tables of (id, columns, key)."""

    def __init__(self, source: random.Random, tables: tuple[tuple[int, tuple[Field, ...], tuple[int, ...] | None], ...]) -> None:
        self.random = source
        self.tables = tables

    def relation(self, depth: int = 4) -> plan.Relation:
        r = self.random
        if depth == 0 or r.random() < 0.1:
            id, columns, key = r.choice(self.tables)
            return plan.Scan(id, columns, key)
        choice = r.random()
        if choice < 0.3:
            input = self.relation(depth - 1)
            return plan.Filter(input, self.condition(input.columns))
        if choice < 0.5:
            input = self.relation(depth - 1)
            scalars = [self.scalar(r.choice(TYPES), input.columns) for _ in range(r.randint(1, 3))]
            scalars += [
                plan.Column(i, input.columns[i].type) for i in r.sample(range(len(input.columns)), r.randint(0, min(2, len(input.columns))))
            ]
            return plan.Project(input, tuple(scalars), tuple(Field(f"p{i}", s.type) for i, s in enumerate(scalars)))
        if choice < 0.77:
            return self.join(depth)
        if choice < 0.85:
            return self.combined(depth)
        if choice < 0.95:
            input = self.relation(depth - 1)
            keys = tuple(self.scalar(r.choice((INT4, TEXT)), input.columns) for _ in range(r.randint(0, 2)))
            return plan.Reduce(input, keys, tuple(self.call(input.columns) for _ in range(r.randint(1, 2))))
        return plan.Distinct(self.relation(depth - 1))

    def combined(self, depth: int) -> plan.Relation:
        """Returns a union of two or three, INTERSECT or EXCEPT; some inputs are VALUES."""
        r = self.random
        types = [r.choice(TYPES) for _ in range(r.randint(1, 3))]
        columns = tuple(Field(f"u{i}", t) for i, t in enumerate(types))

        def part() -> plan.Relation:
            if r.random() < 0.2:
                rows = tuple(tuple(self.scalar(t, ()) for t in types) for _ in range(r.randint(0, 3)))
                return plan.Values(rows, columns)
            input = self.relation(depth - 2 if depth > 1 else 0)
            return plan.Project(input, tuple(self.scalar(t, input.columns) for t in types), columns)

        if r.random() < 0.4:
            return plan.UnionAll(tuple(part() for _ in range(r.randint(2, 3))), columns)
        return plan.SetOperation(part(), part(), r.choice(("intersect", "except")), r.random() < 0.5, columns)

    def join(self, depth: int) -> plan.Relation:
        r = self.random
        left, right = self.relation(depth - 1 if depth < 3 else depth - 2), self.relation(depth - 2 if depth > 1 else 0)
        columns = left.columns + right.columns
        kind = r.choice(("inner", "inner", "inner", "cross", "left", "left", "right", "full", "semi", "anti"))
        if kind == "cross":
            joined: plan.Relation = plan.Join(left, right, "cross", None)
            return plan.Filter(joined, self.equality(left, right) or self.condition(columns)) if r.random() < 0.7 else joined
        conditions = [c for c in (self.equality(left, right),) if c is not None]
        if conditions and r.random() < 0.2:
            conditions = [plan.Not(plan.IsDistinct(*c.arguments)) for c in conditions]  # type: ignore[union-attr]
        while not conditions or r.random() < 0.3:
            conditions.append(self.condition(columns))
        r.shuffle(conditions)
        return plan.Join(left, right, kind, conditions[0] if len(conditions) == 1 else plan.And(tuple(conditions)))

    def equality(self, left: plan.Relation, right: plan.Relation) -> plan.Scalar | None:
        width = len(left.columns)
        pairs = [
            (plan.Column(i, a.type), plan.Column(width + j, b.type))
            for i, a in enumerate(left.columns)
            for j, b in enumerate(right.columns)
            if a.type.name == b.type.name
        ]
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        one: plan.Scalar = a
        if a.type == INT4 and self.random.random() < 0.3:
            one = plan.Call(operator(self.random.choice("+/"), INT4, INT4), (a, plan.Literal(self.random.randint(0, 2), INT4)), INT4)
        sides = (one, b) if self.random.random() < 0.5 else (b, one)
        return plan.Call(operator("=", a.type), sides, BOOL)

    def call(self, columns: tuple[Field, ...]) -> plan.AggregateCall:
        choice = self.random.random()
        condition = self.condition(columns) if self.random.random() < 0.1 else None
        if choice < 0.3:
            return plan.AggregateCall(aggregate("count", None, INT8), (), INT8, filter=condition)
        type = self.random.choice((INT4, DECIMAL))
        argument = self.scalar(type, columns)
        if choice < 0.6:
            name = self.random.choice(("min", "max"))
            return plan.AggregateCall(aggregate(name, type, type), (argument,), argument.type, filter=condition)
        if choice < 0.8:
            result = INT8 if type == INT4 else numeric(2)
            return plan.AggregateCall(aggregate("sum", type, result), (argument,), result, filter=condition)
        return plan.AggregateCall(aggregate("avg", type, numeric(16)), (argument,), numeric(16), filter=condition)

    def condition(self, columns: tuple[Field, ...], depth: int = 0) -> plan.Scalar:
        r = self.random
        choice = r.random()
        if depth < 2 and choice < 0.35:
            parts = (self.condition(columns, depth + 1), self.condition(columns, depth + 1))
            if r.random() < 0.3:  # both sides share a condition
                common = self.condition(columns, depth + 1)
                parts = tuple(plan.And((p, common) if r.random() < 0.5 else (common, p)) for p in parts)
            return plan.And(parts) if r.random() < 0.7 else plan.Or(parts)
        if choice < 0.45:
            return plan.IsNull(self.scalar(r.choice(TYPES), columns, depth + 1))
        if choice < 0.5:
            return plan.Not(self.condition(columns, depth + 1)) if depth < 3 else plan.Literal(True, BOOL)
        type = r.choice((INT4, TEXT, DECIMAL))
        return plan.Call(
            operator(r.choice(("=", "<>", "<", ">=")), type), (self.scalar(type, columns, depth), self.scalar(type, columns, depth)), BOOL
        )

    def scalar(self, type: Type, columns: tuple[Field, ...], depth: int = 0) -> plan.Scalar:
        r = self.random
        own = [plan.Column(i, c.type) for i, c in enumerate(columns) if c.type.name == type.name]
        choice = r.random()
        if own and (choice < 0.6 or depth > 1):
            return r.choice(own)
        if depth < 2 and choice < 0.75 and type in (INT4, DECIMAL):
            sign = r.choice("+-/")
            both = (self.scalar(type, columns, depth + 1), self.scalar(type, columns, depth + 1))
            return plan.Call(operator(sign, type, type), both, type)
        if depth < 2 and choice < 0.8:
            branch = (self.condition(columns, 2), self.scalar(type, columns, depth + 1))
            return plan.Case((branch,), self.scalar(type, columns, depth + 1), type)
        if type == INT4:
            return plan.Literal(r.randint(0, 4), INT4)
        if type == TEXT:
            return plan.Literal(r.choice(("a", "b", "7")), TEXT)
        if type == BOOL:
            return plan.Literal(r.choice((True, False, None)), BOOL)
        return plan.Literal(None if r.random() < 0.2 else Decimal(r.randint(0, 400)) / 100, type)
