"""Workload W1, and the client that measures any system on it.

*Workload.* Orders are joined with customers whose segments change, and grouped by segment and item:

    SELECT c.segment, o.item, count(*) AS orders, sum(o.amount) AS amount
    FROM orders o JOIN customers c ON o.customer_id = c.id GROUP BY c.segment, o.item

Orders are append-only. A change of a customer moves all orders of that customer to another segment.
There are 10 segments and 100 items, so the view has 1,000 rows. Both inputs are Kafka topics with one
partition and JSON values; a customer's message replaces the earlier one with the same key.

*Age of an order.* The time from the producer's call of `produce()` for the order to the moment when the
reader has received a row of the view that includes it. Both clocks are CLOCK_MONOTONIC of one machine.
Customers with even numbers never change, and only they buy items with even numbers, so the counts of
these groups only grow: the nth order of such a group is included as soon as the reader has received a
count of n or more. This holds for any order of delivery, and for systems whose results are inconsistent
while a customer's orders move. Half of all orders are in such groups. Ages are measured for all of them
that were produced in the measured interval, and none may be missing.

*Correctness.* At the end the reader's copy of the view must equal a recompute of all that was produced.

    orders.py      the workload: rows by number, and the recompute
    load.py        a process that produces the workload
    readers.py     the measuring client, a process: TAIL, SELECT, a Kafka topic
    ages.py        computes ages from the records of both processes
    systems.py     the interface of a system under test, and Tailgate
    turns.py       one run of one system
    report.py      tables and the description of the machine
"""
