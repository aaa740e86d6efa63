"""CREATE, DROP and EXPLAIN, from text to what runs: new items of the catalog, a new graph, swapped in with the entry that says so.

    parse ──► engine.ddl: items ──► where topics begin and end ──► graph ──► Engine.install(graph, entry) ──► fill ──► answer

One statement changes the catalog at a time. A materialized view is answered when it is filled, which does not hold up others.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from typing import Any

from engine import ddl
from engine.plan import circuit, nodes
from engine.plan.explain import explain, notices
from engine.plan.plans import Streams
from engine.runtime import kafka
from engine.runtime.engine import Engine
from engine.runtime.fills import Fill, History
from engine.runtime.readers import reader_name
from lake.catalog import Catalog, Change, Item, ready
from lake.errors import FeatureNotSupported
from lake.roles import OPERATOR_ID
from sql.statements import (
    AlterRole,
    CreateRole,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateView,
    Drop,
    DropRole,
    Explain,
    Grant,
    Name,
    parse,
)

log = logging.getLogger("tailgate.engine")

Answer = dict[str, Any]
Creation = CreateSource | CreateView | CreateSink | CreateTable
TAGS = {CreateSource: "CREATE SOURCE", CreateSink: "CREATE SINK", CreateView: "CREATE VIEW", CreateTable: "CREATE TABLE"}
PERCENTILES = (("p50", 0.5), ("p95", 0.95))


class Statements:
    """What the control interface calls; thread safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._registry = ddl.Registry()
        self._fills: dict[int, Fill] = {}

    # ---- for control -----------------------------------------------------------------------------------------------------

    def execute(self, text: str, settings: dict[str, str]) -> Answer:
        """Runs one statement; the answer of `POST /statement`."""
        statement = parse(text)
        match statement:
            case CreateSource() | CreateView() | CreateSink() | CreateTable():
                return self._create(statement, text, settings.get("role"))
            case Drop():
                return self._drop(statement)
            case CreateRole() | AlterRole() | DropRole() | Grant():
                return self._change_roles(statement)
            case Explain(target=target) if isinstance(target, Name | CreateView):
                return {**self._answer("EXPLAIN"), "lines": self._explain(target).splitlines()}
        raise FeatureNotSupported(f"{type(statement).__name__} is not a statement for the engine")

    def newest(self, after: int, timeout: float) -> Answer:
        header = self._engine.wait_newer(after, timeout)
        return {"n": header.n, "time": header.time}

    def status(self) -> Answer:
        engine = self._engine
        items = engine.catalog.items.values()
        durations = sorted(engine.durations)
        return {
            "sources": {i.name: self._source(i) for i in items if i.kind == "source"},
            "sinks": {i.name: self._sink(i) for i in items if i.kind == "sink"},
            "filling": {f.item.name: f.rows for f in self._fills.values()},
            "ticks": engine.ticks,
            "tick_ms": {name: round(durations[int(len(durations) * q)], 1) for name, q in PERCENTILES} if durations else {},
            "n": engine.newest.n,
            "time": engine.newest.time,
        }

    def _source(self, item: Item) -> dict[str, Any]:
        engine = self._engine
        stall = engine.stalls.get(item.options["channel"]) or engine.stalls.get(reader_name(item))
        counts = engine.counters.get(nodes.source_node(item), {})
        status = {"status": "stalled" if stall else "running", "error": stall.error if stall else None}
        return {**status, "records": 0, "dead_letters": 0, **counts}

    def _sink(self, item: Item) -> dict[str, Any]:
        """What the sinks process has written of it."""
        try:
            said = json.loads((self._engine.lake.path / "readers" / f"sink-{item.id}").read_bytes())
        except (OSError, ValueError):
            said = {}
        return {"status": said.get("status", "waiting for tailgate sinks"), "error": said.get("error") or None}

    # ---- starting --------------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Runs what the log's catalog says; views that were being filled begin anew."""
        catalog = self._engine.catalog
        anew = [
            self._numbered(i, catalog) for i in catalog.items.values() if i.kind == "materialized view" and not self._usable(i, catalog)
        ]
        if anew:
            self._install(Change(put=tuple(replace(i, ready=False) for i in anew)), fill=tuple(anew))
        else:
            self._engine.install(circuit.compile_catalog(catalog, Streams(catalog)), self._live(catalog), self._forgotten(()))

    def _usable(self, item: Item, catalog: Catalog) -> bool:
        return item.ready and nodes.recorded(item, catalog, Streams(catalog)(item))

    # ---- creating --------------------------------------------------------------------------------------------------------

    def _create(self, statement: Creation, text: str, creator: str | None) -> Answer:
        tag = TAGS[type(statement)]
        if isinstance(statement, CreateView) and statement.materialized:
            tag = "CREATE MATERIALIZED VIEW"
        with self._lock:
            catalog = self._engine.catalog
            if statement.if_not_exists and catalog.find(statement.name.name) is not None:
                return self._answer(tag, f'relation "{statement.name.name}" already exists, skipping')
            owner = catalog.role(creator).id if creator else OPERATOR_ID
            items = tuple(replace(i, owner=owner) for i in self._items(statement, text, catalog))
            fill = tuple(i for i in items if i.kind == "materialized view")
            header = self._install(Change(put=items), fill=fill)
            after = self._engine.catalog
            told = [_notice(n) for item in fill for n in notices(item, Streams(after)(item))]
        for item in fill:
            if (running := self._fills.get(item.id)) is not None:
                running.done.wait()
                header = self._engine.newest  # the time from which the view can be read
        return {"tag": tag, "n": header.n, "time": header.time, "notices": told}

    def _items(self, statement: Creation, text: str, catalog: Catalog) -> tuple[Item, ...]:
        match statement:
            case CreateSource():
                source, *others = ddl.create_source(statement, text, catalog, self._registry)
                return (self._on_channel(source, catalog), *others)
            case CreateView():
                item = ddl.create_view(statement, text, catalog)
                return (
                    self._numbered(replace(item, ready=False), catalog.apply(Change(put=(item,))))
                    if item.kind == "materialized view"
                    else item,
                )
            case CreateSink():
                return (ddl.create_sink(statement, text, catalog),)
            case CreateTable():
                return (ddl.create_table(statement, text, catalog),)

    def _on_channel(self, source: Item, catalog: Catalog) -> Item:
        """The source with the reader that brings its topic.

        A keyed source reads its topic from the beginning, so it shares no reader with another source of that topic.
        """
        brokers, topic = source.options["brokers"], source.options["topic"]
        kafka.bounds(brokers, [topic], source.options.get("kafka", {}))
        taken = {i.options["channel"] for i in catalog.items.values() if i.kind == "source" and (i.stored or source.stored)}
        number = 0
        while f"{brokers}#{number}/{topic}" in taken:
            number += 1
        return replace(source, options={**source.options, "channel": f"{brokers}#{number}/{topic}"})

    def _numbered(self, view: Item, catalog: Catalog) -> Item:
        """A view about to be filled: where its topics begin, and operators of its own."""
        item_stream = Streams(catalog)(view)
        starts: dict[str, Any] = {}
        for input in circuit.fill_inputs(view, item_stream):
            if input.kind == "topic":
                source = catalog[input.item]
                there = kafka.bounds(source.options["brokers"], [source.options["topic"]], source.options.get("kafka", {}))[
                    source.options["topic"]
                ]
                starts[str(source.id)] = {p: low for p, (low, _) in there.items()}
        view = replace(view, options={**view.options, "starts": starts})
        return nodes.number(view, catalog, item_stream)

    # ---- installing ------------------------------------------------------------------------------------------------------

    def _install(self, change: Change, fill: tuple[Item, ...] = ()) -> Any:
        """The change of the catalog and the circuit for it, in one step; then the fills begin."""
        engine = self._engine
        after = engine.catalog.apply(change)
        streams = Streams(after)
        graph = circuit.compile_catalog(after, streams)
        live = self._live(after)
        joining = self._joining(live)
        forgotten = self._forgotten(circuit.gone(engine.graph, graph), graph)
        errors = {i.errors: circuit.errors_to_fill(i, streams(after[i.id]), after) for i in fill}
        for item in change.put:
            if item.kind == "sink":  # before anybody sees it: from the entry on, the file is the sinks process's
                engine.lake.hold(f"sink-{item.id}", engine.newest.n)
        header = engine.install(graph, live, forgotten, change, joining, errors)
        for view in fill:
            self._begin_fill(after[view.id], header)
        return header

    def _joining(self, live: tuple[Item, ...]) -> dict[str, kafka.Offsets]:
        """Where topics that no reader reads yet begin to be read: for keyed sources at the first record, for others at the end.

        The history of the others comes by filling.
        """
        known = self._engine.newest.offsets
        out: dict[str, kafka.Offsets] = {}
        for source in live:
            reader, topic = reader_name(source), source.options["topic"]
            if topic not in known.get(reader, {}):
                there = kafka.bounds(source.options["brokers"], [topic], source.options.get("kafka", {}))[topic]
                out.setdefault(reader, {})[topic] = {p: low if source.stored else high for p, (low, high) in there.items()}
        return out

    def _begin_fill(self, view: Item, header: Any) -> None:
        catalog = self._engine.catalog
        histories = []
        for input in circuit.fill_inputs(view, Streams(catalog)(view)):
            source = catalog[input.item]
            if input.kind == "topic":
                end = header.offsets[reader_name(source)][source.options["topic"]]
                begin = view.options["starts"][str(source.id)]
                histories.append(History(input.channel, source=source, begin=tuple(begin.items()), end=tuple(end.items())))
            else:
                histories.append(History(input.channel, relation=source.id, time=header.time))
        fill = self._fills[view.id] = Fill(self._engine, view, tuple(histories), self)
        fill.start()

    def filled(self, view: Item) -> None:
        """The last piece is in: the view becomes visible, and operators that equal others' are shared."""
        with self._lock:
            catalog = self._engine.catalog
            if view.id not in catalog.items:
                return
            item = nodes.share(ready(catalog[view.id]), catalog)
            self._install(Change(put=(item,)))
            self._fills.pop(view.id, None)

    def _live(self, catalog: Catalog) -> tuple[Item, ...]:
        """The sources that are read: keyed ones, and those that a materialized view reads."""
        wanted = {i.id for i in catalog.items.values() if i.kind == "source" and i.stored}
        for item in catalog.items.values():
            if item.kind == "materialized view":
                wanted |= {s for s in _bases(item, catalog) if catalog[s].kind == "source"}
        return tuple(catalog[i] for i in sorted(wanted))

    def _forgotten(self, gone: tuple[int, ...], graph: Any = None) -> tuple[int, ...]:
        """Operators whose state is still to be removed: those of before, and these."""
        live = {o.node for o in graph.operators} if graph is not None else set()
        return tuple(sorted({*self._engine.newest.extra.get("forgotten", ()), *gone} - live))

    # ---- dropping and explaining -----------------------------------------------------------------------------------------

    def _drop(self, statement: Drop) -> Answer:
        with self._lock:
            items, said = ddl.drop(statement, self._engine.catalog)
            if items:
                self._install(Change(drop=tuple(i.id for i in items)))
        return {**self._answer(f"DROP {statement.kind.upper()}"), "notices": said}

    def _change_roles(self, statement: CreateRole | AlterRole | DropRole | Grant) -> Answer:
        with self._lock:
            tag, change, notices = ddl.change_roles(statement, self._engine.catalog)
            if change != Change():
                self._install(change)
        return {**self._answer(tag), "notices": notices}

    def _explain(self, target: Name | CreateView) -> str:
        catalog = self._engine.catalog
        if isinstance(target, Name):
            item = catalog.relation(target.name, target.position)
        else:
            item = ddl.create_view(target, target.query.text, catalog)
            catalog = catalog.apply(Change(put=(item,)))
        return explain(item, catalog, Streams(catalog))

    def _answer(self, tag: str, notice: str | None = None) -> Answer:
        newest = self._engine.newest
        return {"tag": tag, "n": newest.n, "time": newest.time, "notices": [_notice(notice)] if notice else []}


def _notice(message: str) -> dict[str, Any]:
    return {"severity": "NOTICE", "sqlstate": "00000", "message": message, "hint": None}


def _bases(item: Item, catalog: Catalog) -> set[int]:
    """What an item's definition names, through plain views, down to what has rows of its own."""
    found: set[int] = set()
    for id in item.depends:
        other = catalog[id]
        found |= _bases(other, catalog) if other.kind == "view" else {id}
    return found
