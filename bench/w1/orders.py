"""The rows of workload W1 by number, and the expected content of the view.

Row n is the same in every process and run, so processes only exchange numbers of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa

ORDERS, CUSTOMERS, VIEW = "orders", "customers", "revenue"
QUERY = f"""SELECT c.segment, o.item, count(*) AS orders, sum(o.amount) AS amount
            FROM {ORDERS} o JOIN {CUSTOMERS} c ON o.customer_id = c.id GROUP BY c.segment, o.item"""
SEGMENTS, ITEMS = 10, 100
GROUPS = SEGMENTS * ITEMS
CHUNK = 10_000  # rows generated at once
SEED = 1
CENTS_MIN, CENTS_MAX = 100, 100_000

Number = TypeVar("Number", int, np.ndarray)
Row = tuple[str, str, int, Decimal]  # of the view: segment, item, orders, amount


@dataclass(frozen=True, slots=True)
class Orders:
    """A chunk of orders, by column; amounts are in cents."""

    customers: list[int]
    items: list[int]
    cents: list[int]


@dataclass(frozen=True, slots=True)
class Changes:
    """A chunk of changes of customers, by column."""

    customers: list[int]
    segments: list[int]


@dataclass(frozen=True)
class Workload:
    """The workload for a number of customers, which must be even, so that half of them can change."""

    customers: int = 10_000

    def __post_init__(self) -> None:
        if self.customers < 2 or self.customers % 2:
            raise ValueError(f"the number of customers must be even and positive, not {self.customers}")

    @staticmethod
    def segment(customer: int) -> int:
        """Returns the customer's first segment."""
        return customer // 2 % SEGMENTS

    def orders(self, chunk: int) -> Orders:
        """Returns orders [chunk * CHUNK, (chunk + 1) * CHUNK). Even customers buy even items."""
        return _orders(self.customers, chunk)

    def changes(self, chunk: int) -> Changes:
        """Returns changes [chunk * CHUNK, (chunk + 1) * CHUNK), of odd customers."""
        return _changes(self.customers, chunk)

    def order_message(self, n: int) -> tuple[str, str]:
        """Returns the key and value of order n's message."""
        chunk, i = self.orders(n // CHUNK), n % CHUNK
        cents = chunk.cents[i]
        value = (
            f'{{"id": {n}, "customer_id": {chunk.customers[i]}, "item": "item {chunk.items[i]}",'
            f' "amount": {cents // 100}.{cents % 100:02}}}'
        )
        return str(n), value

    def customer_message(self, customer: int) -> tuple[str, str]:
        """Returns the key and value of a customer's first message."""
        return _customer(customer, self.segment(customer))

    def change_message(self, n: int) -> tuple[str, str]:
        """Returns the key and value of change n's message."""
        chunk, i = self.changes(n // CHUNK), n % CHUNK
        return _customer(chunk.customers[i], chunk.segments[i])

    def groups(self, count: int) -> np.ndarray:
        """Returns each order's group, or -1 if the group's count may shrink, for the first `count` orders."""
        groups = np.full(count, -1, dtype=np.int64)
        for chunk in range(-(-count // CHUNK)):
            part = self.orders(chunk)
            customers, items = np.array(part.customers), np.array(part.items)
            numbers = group(customers // 2 % SEGMENTS, items)
            first = chunk * CHUNK
            groups[first : first + CHUNK] = np.where(items % 2 == 0, numbers, -1)[: count - first]
        return groups

    def fill(self, db: duckdb.DuckDBPyConnection, orders: int, changes: int) -> None:
        """Creates the tables with the first `orders` orders, and the customers after `changes` changes."""
        segments = {customer: self.segment(customer) for customer in range(self.customers)}
        for chunk in range(-(-changes // CHUNK)):
            part = self.changes(chunk)
            count = changes - chunk * CHUNK
            segments.update(zip(part.customers[:count], part.segments[:count], strict=True))
        chunks = [self.orders(chunk) for chunk in range(-(-orders // CHUNK))]
        columns = {name: np.concatenate([np.empty(0, np.int64), *(getattr(c, name) for c in chunks)])[:orders] for name in Orders.__slots__}
        db.register("o", pa.table({"id": np.arange(orders), **columns}))
        db.register("c", pa.table({"id": list(segments), "segment": list(segments.values())}))
        db.execute(
            f"""CREATE TABLE {ORDERS} AS SELECT id, customers AS customer_id, 'item ' || items AS item,
                (cents * 0.01::DECIMAL(3,2))::DECIMAL(10,2) AS amount FROM o"""
        )
        db.execute(f"CREATE TABLE {CUSTOMERS} AS SELECT id, 'segment ' || segment AS segment FROM c")
        db.execute("DROP VIEW o; DROP VIEW c")

    def answer(self, orders: int, changes: int) -> frozenset[Row]:
        """Computes the view with DuckDB after `orders` orders and `changes` changes of customers."""
        with duckdb.connect() as db:
            self.fill(db, orders, changes)
            return frozenset(db.execute(QUERY).fetchall())


def group(segment: Number, item: Number) -> Number:
    """Returns the number of a group, or the numbers of the groups of two arrays."""
    return segment * ITEMS + item


def named_group(segment: str, item: str) -> int:
    """Returns the number of the group with these names if its count only grows, otherwise -1.

    >>> named_group("segment 3", "item 42"), named_group("segment 3", "item 41")
    (342, -1)
    """
    number = int(item[5:])
    return -1 if number % 2 else group(int(segment[8:]), number)


def _customer(customer: int, segment: int) -> tuple[str, str]:
    return str(customer), f'{{"id": {customer}, "segment": "segment {segment}"}}'


@lru_cache(maxsize=4)
def _orders(customers: int, chunk: int) -> Orders:
    chance = np.random.default_rng((SEED, 0, chunk))
    buyers = chance.integers(0, customers, CHUNK)
    items = 2 * chance.integers(0, ITEMS // 2, CHUNK) + buyers % 2
    cents = chance.integers(CENTS_MIN, CENTS_MAX, CHUNK)
    return Orders(buyers.tolist(), items.tolist(), cents.tolist())


@lru_cache(maxsize=4)
def _changes(customers: int, chunk: int) -> Changes:
    chance = np.random.default_rng((SEED, 1, chunk))
    changed = 2 * chance.integers(0, customers // 2, CHUNK) + 1
    return Changes(changed.tolist(), chance.integers(0, SEGMENTS, CHUNK).tolist())
