"""Golden tests of the planner: scripts of statements with the expected output.

    # the subject of the case
    > CREATE … | DROP … | EXPLAIN … | GRAPH [of a view] | PASSES view | SIZES relation rows, … (of what later views read)
    ---
    the answer

With TAILGATE_UPDATE=1, the actual output replaces the expected one, to be reviewed as a diff.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tailgate.engine import ddl
from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.decoders import ArrowDecoder, FormatSpec
from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.circuit.steps import Filter, Project, Steps, Unnest
from tailgate.engine.plan.explain import explain, scanned
from tailgate.engine.plan.rewrites.passes import steps
from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.shared_joins import with_shared_joins
from tailgate.engine.plan.views.sharing import Sharing
from tailgate.engine.plan.views.sizes import with_sizes
from tailgate.engine.plan.views.streams import Streams, bound_plan
from tailgate.lake.catalog import Catalog, Change, MaterializedView, ready
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field
from tailgate.sql.plan.explain import tree
from tailgate.sql.statements import CreateSink, CreateSource, CreateView, Drop, Explain, Name, parse

SCRIPTS = Path(__file__).parent / "golden"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "debezium"


@dataclass
class Case:
    """One command of a script, with the comment before it and the expected answer."""

    comment: list[str]
    command: str
    answer: str


def cases(path: Path) -> list[Case]:
    out = []
    for block in path.read_text().split("\n\n\n"):
        lines = block.strip("\n").splitlines()
        comment = [line for line in lines if line.startswith("#")]
        rest = lines[len(comment) :]
        cut = rest.index("---") if "---" in rest else len(rest)
        command = "\n".join(line[2:] for line in rest[:cut])
        out.append(Case(comment, command, "\n".join(rest[cut + 1 :])))
    return [c for c in out if c.command]


def written(all: list[Case]) -> str:
    blocks = []
    for c in all:
        command = "\n".join(f"> {line}".rstrip() for line in c.command.splitlines())
        blocks.append("\n".join([*c.comment, command, "---", *c.answer.splitlines()]))
    return "\n\n\n".join(blocks) + "\n"


class Shop:
    """The schemas of the shop's tables, as Debezium registers them."""

    def latest(self, url: str, subject: str, settings: object = ()) -> str | None:
        entries = json.loads((FIXTURES / "mariadb-avro" / "schemas.json").read_text())
        recorded_subject = subject.replace("mysql.shop", "mariadb-avro.shop")
        matches = [s for s in entries if s["subject"] == recorded_subject and s["version"] == 1]
        return (
            matches[0]["schema"]
            if matches and isinstance(matches[0]["schema"], str)
            else json.dumps(matches[0]["schema"])
            if matches
            else None
        )


@dataclass
class World:
    """The catalog that a script builds, and the sizes of its relations."""

    catalog: Catalog = field(default_factory=Catalog)
    rows: dict[int, int] = field(default_factory=dict)  # relation → number of rows, for the views that follow

    def run(self, command: str) -> str:
        try:
            return self._run(command)
        except TailgateError as e:
            more = [f"{what}: {text}" for what, text in (("DETAIL", e.detail), ("HINT", e.hint)) if text]
            at = [f"AT: {command[e.position : e.position + 20].split(chr(10))[0]}"] if e.position is not None else []
            return "\n".join([f"ERROR {e.sqlstate}: {e.message}", *more, *at])

    def _run(self, command: str) -> str:
        word, _, rest = command.partition(" ")
        if word == "SIZES":
            self.rows = {self.catalog.relation(name).id: int(n) for name, n in (size.split() for size in rest.split(", "))}
            return ""
        if word == "GRAPH":
            return Printer(self.catalog).text(catalog_graph.compile_catalog(self.catalog, Streams(self.catalog)))
        if word == "FILLING":
            return self._filling(rest)
        if word == "PASSES":
            item = self.catalog.relation(rest)
            return "\n".join(
                f"{name}:\n{_indented(tree(plan, lambda scan: scanned(scan, self.catalog)))}"
                for name, plan in steps(bound_plan(item, self.catalog))
            )
        statement = parse(command)
        match statement:
            case CreateSource():
                self._put(*ddl.create_source(statement, command, self.catalog, Shop()))
            case CreateView():
                return self._view(statement, command)
            case CreateSink():
                self._put(ddl.create_sink(statement, command, self.catalog))
            case Drop():
                change, notices = ddl.drop(statement, self.catalog)
                self.catalog = self.catalog.apply(change)
                return "\n".join(f"NOTICE: {n['message']}" for n in notices)
            case Explain(target=Name(name=name)):
                return explain(self.catalog.relation(name), self.catalog, Streams(self.catalog))
            case _:
                raise AssertionError(command)
        return ""

    def _view(self, statement: CreateView, text: str, *, filled: bool = True) -> str:
        item = ddl.create_view(statement, text, self.catalog)
        if isinstance(item, MaterializedView):
            after = self.catalog.apply(Change(put=(item,)))
            if self.rows:
                item = with_sizes(item, self.rows, self.catalog)
            item = with_shared_joins(item, after)
            after = self.catalog.apply(Change(put=(item,)))
            item = nodes.with_new_nodes(replace(item, ready=False), after, Streams(after)(item))
            self._put(item)
            if filled:
                graph = catalog_graph.compile_catalog(self.catalog, Streams(self.catalog))
                item = Sharing(graph, lambda one, other: True)(ready(item), self.catalog)
        self._put(item)
        columns = ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' not null'}" for c in item.columns)
        names = [item.columns[k].name for k in item.key or ()]
        return f"({columns})" + (f" key ({', '.join(names)})" if names else "")

    def _filling(self, text: str) -> str:
        statement = parse(text)
        assert isinstance(statement, CreateView)
        before = self.catalog
        self._view(statement, text, filled=False)
        answer = Printer(self.catalog).text(catalog_graph.compile_catalog(self.catalog, Streams(self.catalog)))
        self.catalog = before
        return answer

    def _put(self, *items: Any) -> None:
        self.catalog = self.catalog.apply(Change(put=items))


def _indented(text: str) -> str:
    return "\n".join("   " + line for line in text.splitlines())


class Printer:
    """A printer of graphs without ids: nodes are named by their purpose."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.names: dict[int, str] = {}

    def text(self, graph: Graph) -> str:
        for source in graph.sources:
            fill = source.channel.startswith("$fill")
            item = self.catalog.items[nodes.owner(source.node)]
            self.names[source.node] = (
                f"{'history' if fill else 'source'} of {item.name}{self._number(source.node, item.id) if fill else ''}"
            )
        for operator in graph.operators:
            item = self.catalog.items[nodes.owner(operator.node)]
            kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(operator).__name__).lower()
            self.names[operator.node] = f"{kind} of {item.name}{self._number(operator.node, item.id)}"
        out = []
        for source in graph.sources:
            channel = "$fill" if source.channel.startswith("$fill") else source.channel
            out += [f"{self.names[source.node]}: channel {channel}", *self._decoder(source.decoder), *self._steps(source.shape)]
            out += self._leaving(graph, source.node)
        for operator in graph.operators:
            out += [f"{self.names[operator.node]}: {self._operator(operator)}", *self._leaving(graph, operator.node)]
        for relation in graph.relations:
            errors = ", with errors" if relation.errors else ""
            out.append(f"relation {self.catalog.items[relation.relation].name}({self._fields(relation.columns)}){errors}")
        return "\n".join(out)

    def _number(self, node: int, item: int) -> str:
        if not isinstance(self.catalog.items[item], MaterializedView):
            return ""
        slot = node % nodes.SLOTS
        return f" ({slot if slot < nodes.SLOTS - nodes.BACKFILLS else nodes.SLOTS - 1 - slot})"

    def _operator(self, node: Any) -> str:
        match node:
            case operators.CdcBag(columns=columns):
                return f"({self._fields(columns)}) without a key"
            case operators.Upsert(columns=columns, key=key) | operators.CdcUpsert(columns=columns, key=key):
                return f"({self._fields(columns)}) on {self._columns(key)}"
            case operators.Join(left=left, right=right, left_key=a, right_key=b, append_only=append_only, condition=condition):
                sides = [s for s, only in zip(("left", "right"), append_only, strict=True) if only]
                only = f", append-only: {' '.join(sides)}" if sides else ""
                join_kind = "" if node.kind == "inner" else f"{node.kind}, "
                condition_text = "" if condition is None else f" where {condition.expression}"
                sides_text = f"({self._fields(left)}) on {self._columns(a)} with ({self._fields(right)}) on {self._columns(b)}"
                return f"{join_kind}{sides_text}{condition_text}{only}"
            case operators.ArrivalJoin(left=left, right=right, left_key=a, right_key=b):
                sides_text = f"({self._fields(left)}) on {self._columns(a)} with ({self._fields(right)}) on {self._columns(b)}"
                return f"{node.kind}, {sides_text}{', filling' if node.filling else ''}"
            case operators.WithinJoin(left=left, right=right, left_key=a, right_key=b):
                sides_text = f"({self._fields(left)}) on {self._columns(a)} with ({self._fields(right)}) on {self._columns(b)}"
                times = f"c{node.left_time} and c{node.right_time} within {node.before}, {node.after}, grace {node.grace}"
                return f"{node.kind}{', eager' if node.eager else ''}, {sides_text}, {times}{', filling' if node.filling else ''}"
            case operators.Closing(input=input, width=width):
                times = f"c{node.time} until c{node.end}, grace {node.grace}"
                if node.session is not None:
                    times += f", sessions from c{node.session[0]} by {self._columns(node.session[1])}"
                last = f"{', last rows' if node.last else ''}{', filling' if node.filling else ''}"
                return f"({self._fields(input[:width])}) of ({self._fields(input)}), {times}{last}"
            case operators.Fixpoint(columns=columns, all=all, limit=limit):
                keys = f" by {self._columns(node.keys)}" if node.keys else ""
                return f"({self._fields(columns)}){keys}{' all' if all else ''}, at most {limit} rounds"
            case operators.SetOperation(kind=kind, all=all):
                return f"{kind}{' all' if all else ''} of ({self._fields(node.columns)})"
            case operators.Window(input=input, width=width, partition=partition, order=order, functions=functions):
                keys = ", ".join(f"c{k.column}{' desc' if k.descending else ''}{' nulls first' if k.nulls_first else ''}" for k in order)
                calls = ", ".join(f"{self._aggregate(f.function)} {f.mode} {f.start.kind} to {f.end.kind}" for f in functions)
                return f"({self._fields(input[:width])}) of ({self._fields(input)}) by {self._columns(partition)} in ({keys}): {calls}"
            case operators.TopK(input=input, width=width, partition=partition, order=order):
                last = f"{'all' if node.count is None else node.count} after {node.offset}{' with ties' if node.ties else ''}"
                keys = ", ".join(f"c{k.column}{' desc' if k.descending else ''}{' nulls first' if k.nulls_first else ''}" for k in order)
                return f"({self._fields(input[:width])}) of ({self._fields(input)}) by {self._columns(partition)} in ({keys}): {last}"
            case operators.Reduce(input=input, key=key, aggregates=aggregates):
                calls = ", ".join(map(self._aggregate, aggregates))
                until = "" if node.retention is None else f", until c{node.retention[0]} + {node.retention[1]}"
                return f"({self._fields(input)}) by {self._columns(key)}: {calls}{until}"
        raise AssertionError(node)

    def _aggregate(self, call: operators.AggregateCall) -> str:
        shown = ", ".join(f"c{c}" for c in call.columns) or "*"
        order = ", ".join(f"c{k.column}{' desc' if k.descending else ''}" for k in call.order)
        inside = f"{'distinct ' if call.distinct else ''}{shown}{' order by ' + order if order else ''}"
        filtered = f" filter c{call.filter}" if call.filter >= 0 else ""
        return f"{call.function}({inside}){filtered} {call.type.spark}{f', limit {call.limit}' if call.limit else ''}"

    def _leaving(self, graph: Graph, node: int) -> list[str]:
        out = []
        for edge in graph.edges:
            if edge.origin == node:
                out += [f"  to {self.names[edge.to]}, port {edge.port}", *self._steps(edge.shape, 4)]
        for letter in graph.dead_letter_edges:
            if letter.source == node:
                out += [f"  dead letters to {self.names[letter.to]}"]
        for output in graph.outputs:
            if output.origin == node:
                out += [f"  to relation {self.catalog.items[output.relation].name}", *self._steps(output.shape, 4)]
        return out

    def _steps(self, shape: Steps, indent: int = 2) -> list[str]:
        pad = " " * indent
        return [pad + self._step(s) for s in shape.steps]

    def _step(self, step: Filter | Project | Unnest) -> str:
        match step:
            case Filter(expression):
                return f"where {expression}"
            case Project(expressions):
                return f"select {', '.join(expressions)}"
            case Unnest(array, _, outer):
                return f"explode {'outer ' if outer else ''}{array}"

    def _decoder(self, decoder: Any) -> list[str]:
        if isinstance(decoder, ArrowDecoder):
            return [f"  rows ({self._fields(decoder.columns)})"]
        return [f"  key {self._format(decoder.key)}, value {self._format(decoder.value)}"]

    def _format(self, spec: FormatSpec) -> str:
        if spec.kind != "avro":
            return spec.kind + (f" ({spec.columns})" if spec.columns else "")
        return f"avro ({', '.join(f['name'] for f in json.loads(spec.schema)['fields'])})"

    def _fields(self, columns: tuple[Field, ...]) -> str:
        return ", ".join(c.type.spark for c in columns)

    def _columns(self, positions: tuple[int, ...]) -> str:
        return "(" + ", ".join(f"c{p}" for p in positions) + ")"
