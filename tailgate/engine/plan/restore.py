"""Rebuilds the state of upserts from the rows of their relations.

    rows of the stored relation ──channel $restore/<node>──► upsert

The upsert has no output here, because the relation already has the rows. The rows do not contain
positions, so the next event of each restored key always applies.
"""

from __future__ import annotations

from tailgate.engine.plan import nodes
from tailgate.engine.plan.graph import CAPTURED, ArrowDecoder, CaptureNode, Edge, Graph, Linear, Select, SourceNode, UpsertNode
from tailgate.lake.catalog import Catalog
from tailgate.lake.types import BOOL, TEXT, Field, Type

RESTORE = "$restore/"


def restoring(graph: Graph, catalog: Catalog) -> tuple[Graph, dict[str, int]]:
    """Returns a graph of the upserts in `graph` alone, and for each channel the relation to send."""
    upserts = tuple(o for o in graph.operators if isinstance(o, UpsertNode | CaptureNode))
    sources, edges, channels = [], [], {}
    for upsert in upserts:
        channel, node = f"{RESTORE}{upsert.node}", nodes.fill_node(catalog[nodes.owner(upsert.node)], 0)
        shape, columns = _entering(upsert)
        sources.append(SourceNode(node, channel, ArrowDecoder(upsert.columns), shape, columns))
        edges.append(Edge(node, Linear(), upsert.node, 0))
        channels[channel] = nodes.owner(upsert.node)
    return Graph(sources=tuple(sources), operators=upserts, edges=tuple(edges)), channels


def _entering(upsert: UpsertNode | CaptureNode) -> tuple[Linear, tuple[Field, ...]]:
    """Returns the step from a row to the input of the operator, and the columns of that input.

    For a capture the row is an event of an incremental snapshot, without a table.
    """
    row = [f"c{i}" for i in range(len(upsert.columns))]
    if isinstance(upsert, UpsertNode):
        shape = Select((*row, "false", "CAST(NULL AS STRING)"))
        return Linear((shape,)), (*upsert.columns, Field("deleted", BOOL), Field("position", TEXT))
    said = ("'r'", "''", "''", "CAST(NULL AS STRING)", "''", "CAST(0 AS BIGINT)", "'incremental'", "0")
    if upsert.key is not None:
        return Linear((Select((*row, *said)),)), (*upsert.columns, *CAPTURED)
    of = Type("record", fields=upsert.columns)
    after = "named_struct(" + ", ".join(f"'{c}', {c}" for c in row) + ")"
    return Linear((Select((after, f"CAST(NULL AS {of.spark})", *said)),)), (Field("after", of), Field("before", of), *CAPTURED)
