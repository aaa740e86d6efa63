"""The state of upserts made again from the rows that they keep.

    rows of the stored relation ──channel $restore/<node>──► upsert          (nothing leaves it: the relation has these rows already)

Positions are not among the rows, so for keys restored like this the next event always applies.
"""

from __future__ import annotations

from engine.plan import nodes
from engine.plan.graph import ArrowDecoder, Edge, Graph, Linear, Select, SourceNode, UpsertNode
from lake.catalog import Catalog
from lake.types import BOOL, TEXT, Field

RESTORE = "$restore/"


def restoring(graph: Graph, catalog: Catalog) -> tuple[Graph, dict[str, int]]:
    """The graph of the upserts of another alone, and the relation whose rows are to be sent on each channel."""
    upserts = tuple(o for o in graph.operators if isinstance(o, UpsertNode))
    sources, edges, channels = [], [], {}
    for upsert in upserts:
        channel, node = f"{RESTORE}{upsert.node}", nodes.fill_node(catalog[nodes.owner(upsert.node)], 0)
        shape = Linear((Select((*(f"c{i}" for i in range(len(upsert.columns))), "false", "CAST(NULL AS STRING)")),))
        columns = (*upsert.columns, Field("deleted", BOOL), Field("position", TEXT))
        sources.append(SourceNode(node, channel, ArrowDecoder(upsert.columns), shape, columns))
        edges.append(Edge(node, Linear(), upsert.node, 0))
        channels[channel] = nodes.owner(upsert.node)
    return Graph(sources=tuple(sources), operators=upserts, edges=tuple(edges)), channels
