"""Tests the rows and the recompute of workload W1 against another computation from the messages."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal

import pytest

from bench.w1.orders import CHUNK, GROUPS, Row, Workload, named_group

ORDERS, CHANGES = 2 * CHUNK + 500, CHUNK + 70


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(customers=1_000)


def folded(workload: Workload, orders: int, changes: int) -> frozenset[Row]:
    """Computes the view from the text of the messages only."""
    segments = {}
    messages = [workload.customer_message(n) for n in range(workload.customers)]
    for key, value in (*messages, *(workload.change_message(n) for n in range(changes))):
        assert json.loads(value)["id"] == int(key)
        segments[int(key)] = json.loads(value)["segment"]
    groups: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for n in range(orders):
        order = json.loads(workload.order_message(n)[1], parse_float=Decimal)
        assert order["id"] == n
        groups[segments[order["customer_id"]], order["item"]].append(order["amount"])
    return frozenset((*names, len(amounts), sum(amounts, Decimal(0))) for names, amounts in groups.items())


@pytest.mark.parametrize(("orders", "changes"), [(0, 0), (1, 0), (CHUNK, CHUNK), (ORDERS, CHANGES)])
def test_the_recompute(workload: Workload, orders: int, changes: int) -> None:
    assert workload.answer(orders, changes) == folded(workload, orders, changes)


def test_only_odd_customers_change_and_only_even_ones_buy_even_items(workload: Workload) -> None:
    changed = {int(workload.change_message(n)[0]) for n in range(CHANGES)}
    assert all(customer % 2 for customer in changed)
    assert len(changed) == workload.customers // 2
    for n in range(ORDERS):
        order = json.loads(workload.order_message(n)[1])
        assert order["customer_id"] % 2 == int(order["item"].removeprefix("item ")) % 2


def test_groups_are_those_whose_counts_only_grow(workload: Workload) -> None:
    groups = workload.groups(ORDERS)
    for n in range(ORDERS):
        order = json.loads(workload.order_message(n)[1])
        segment = json.loads(workload.customer_message(order["customer_id"])[1])["segment"]
        assert groups[n] == named_group(segment, order["item"])
    assert 0.45 < (groups >= 0).mean() < 0.55


def test_every_group_of_the_view_occurs(workload: Workload) -> None:
    assert len(workload.answer(5 * CHUNK, 0)) == GROUPS


def test_an_odd_number_of_customers_is_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        Workload(customers=3)
