"""Rebuilds the state of upserts from the rows of their relations.

    rows of the stored relation ──channel $restore/<node>──► upsert

The upsert has no output here, because the relation already has the rows. The rows do not contain
positions, so the next event of each restored key always applies.
"""

from __future__ import annotations

from tailgate.engine.plan.circuit.decoders import ArrowDecoder
from tailgate.engine.plan.circuit.graph import Edge, Graph, SourceNode
from tailgate.engine.plan.circuit.operators import CHANGE_EVENT, CdcBag, CdcUpsert, Upsert
from tailgate.engine.plan.circuit.steps import Project, Steps
from tailgate.engine.plan.views import nodes
from tailgate.lake.catalog import Catalog
from tailgate.lake.types import BOOL, TEXT, Field, Type

RECOVERY = "$restore/"


def recovery_graph(graph: Graph, catalog: Catalog) -> tuple[Graph, dict[str, int]]:
    """Returns a graph of the upserts in `graph` alone, and for each channel the relation to send."""
    upserts = tuple(o for o in graph.operators if isinstance(o, Upsert | CdcUpsert | CdcBag))
    sources, edges, channels = [], [], {}
    for upsert in upserts:
        channel, node = f"{RECOVERY}{upsert.node}", nodes.backfill_node(catalog[nodes.owner(upsert.node)], 0)
        shape, columns = _upsert_input(upsert)
        sources.append(SourceNode(node, channel, ArrowDecoder(upsert.columns), shape, columns))
        edges.append(Edge(node, Steps(), upsert.node, 0))
        channels[channel] = nodes.owner(upsert.node)
    return Graph(sources=tuple(sources), operators=upserts, edges=tuple(edges)), channels


def _upsert_input(upsert: Upsert | CdcUpsert | CdcBag) -> tuple[Steps, tuple[Field, ...]]:
    """Returns the step from a row to the input of the operator, and the columns of that input.

    For change events the row is an event of an incremental snapshot, without a table.
    """
    row = [f"c{i}" for i in range(len(upsert.columns))]
    if isinstance(upsert, Upsert):
        shape = Project((*row, "false", "CAST(NULL AS STRING)"))
        return Steps((shape,)), (*upsert.columns, Field("deleted", BOOL), Field("position", TEXT))
    event = ("'r'", "''", "''", "CAST(NULL AS STRING)", "''", "CAST(0 AS BIGINT)", "'incremental'", "0")
    if isinstance(upsert, CdcUpsert):
        return Steps((Project((*row, *event)),)), (*upsert.columns, *CHANGE_EVENT)
    record = Type("record", fields=upsert.columns)
    after = "named_struct(" + ", ".join(f"'f{n}', {c}" for n, c in enumerate(row, 1)) + ")"
    return Steps((Project((after, f"CAST(NULL AS {record.spark})", *event)),)), (
        Field("after", record),
        Field("before", record),
        *CHANGE_EVENT,
    )
