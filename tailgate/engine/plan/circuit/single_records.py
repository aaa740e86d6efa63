"""The channels whose records the loop gives to ticks of one record, while few of them arrive.

A tick has one change of a row, and ksqlDB writes a record to the topic of a table for each change that an input record causes. The
order of the records of several topics in one tick is that of their timestamps, in ticks of one record that of their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.circuit.operators import ArrivalJoin, CdcBag, CdcUpsert, Closing, Upsert, WithinJoin

ORDERED = (ArrivalJoin, WithinJoin, Closing)  # operators whose output depends on the order of their input


@dataclass(frozen=True, slots=True)
class SingleRecords:
    """Channels of streams, and of tables, whose records come first if they arrived together and have the same time."""

    streams: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()


def single_records(graph: Graph) -> SingleRecords:
    """Returns the channels whose records reach a table of ksqlDB's queries, or an operator that depends on the order of its input."""
    origins: dict[int, list[int]] = {}
    for edge in graph.edges:
        origins.setdefault(edge.to, []).append(edge.origin)
    waiting = [o.node for o in graph.operators if isinstance(o, ORDERED)]
    tables_of_queries = {relation.relation for relation in graph.relations if relation.repeats}
    waiting += [output.origin for output in graph.outputs if output.relation in tables_of_queries]
    nodes = set[int]()
    while waiting:
        if (node := waiting.pop()) not in nodes:
            nodes.add(node)
            waiting += origins.get(node, ())
    keyed = {o.node for o in graph.operators if isinstance(o, Upsert | CdcUpsert | CdcBag)}
    of_tables = {edge.origin for edge in graph.edges if edge.to in keyed}
    channels = [(source.channel, source.node in of_tables) for source in graph.sources if source.node in nodes]
    tables = frozenset(channel for channel, is_table in channels if is_table)
    return SingleRecords(frozenset(channel for channel, _ in channels) - tables, tables)
