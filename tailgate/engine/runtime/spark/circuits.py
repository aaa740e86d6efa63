"""Builds the running circuit from a graph of `engine.plan`: one call of the Java library per new part.

    graph before ──┐
    graph ─────────┴─ parts that differ ──► Circuit.without(removed) ──► a call per new part ──► seal

Chains of filters and projections are written as DataFrames over an empty RDD, because Catalyst
would fold away an empty local relation. The library takes their optimised expressions.

DataFrames and row types are cached by their text, so that a change of the catalog analyses only new
ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.decoders import ArrowDecoder, DecoderSpec, FormatSpec
from tailgate.engine.plan.circuit.graph import Graph, SourceNode
from tailgate.engine.plan.circuit.operators import SortColumn
from tailgate.engine.plan.circuit.steps import Filter, Project, Steps, Unnest
from tailgate.engine.plan.explain import OperatorStatistics, Statistics
from tailgate.engine.runtime.spark.circuit_parts import RELATION, Parts, ddl_of, difference, parts_of
from tailgate.lake.catalog.codec import decode_settings
from tailgate.lake.catalog.formats import ConnectionSettings
from tailgate.lake.catalog.secrets import without_secrets
from tailgate.lake.clients import plain_key
from tailgate.lake.errors import TailgateError, of
from tailgate.lake.types import Field

NOTHING = Parts({}, {}, {})
Opened = Callable[[ConnectionSettings], dict[str, str]]  # decrypts the settings of an item
# Spark's class for upper and lower case, and what uses it. Its first use computes the title case of all characters, which allocates
# 2.7 GB and takes 0.4 s.
CASES = "org.apache.spark.sql.catalyst.util.CollationAwareUTF8String"
USES_CASES = re.compile(r"\b(lower|upper)\(", re.IGNORECASE)
CACHED_MAX = 2_000  # cached DataFrames, row types and arrays, of each kind: views that come and go have others each time

Key = TypeVar("Key")
Cached = TypeVar("Cached")


def _keep(cache: dict[Key, Cached], key: Key, value: Cached) -> Cached:
    """Caches a value, and removes the oldest one above CACHED_MAX."""
    cache[key] = value
    if len(cache) > CACHED_MAX:
        del cache[next(iter(cache))]
    return value


class Circuits:
    """Builds circuits in one Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session._jvm
        # every part of a name of the JVM is a round trip
        jvm: Any = session._jvm
        self._circuit, self._operators = jvm.tailgate.circuit.Circuit, jvm.tailgate.operators.Operators
        self._formats, self._decoders = jvm.tailgate.formats.Formats, jvm.tailgate.sources.Decoder
        self._int, self._boolean, self._struct_type = jvm.int, jvm.boolean, jvm.org.apache.spark.sql.types.StructType
        self._arrays: dict[tuple[int | bool, ...], Any] = {}
        self._shapes: dict[tuple[str, Steps], Any] = {}
        self._structs: dict[str, Any] = {}
        # the circuit that was built last, with its parts and the nodes that it forgets
        self._last: tuple[Parts, frozenset[int], Any] | None = None
        self._warm: Any = None  # the circuit that was warmed last
        self._has_cases = False  # whether Spark's class for upper and lower case is initialized

    def build(self, graph: Graph, forgotten: Iterable[int] = (), opened: Opened = without_secrets, running: Any = None) -> Any:
        """Returns the sealed circuit. It is `running`, a circuit with the state of the next tick, if nothing differs.

        It shares equal parts with the circuit that was built last, which must not run any more when this
        one does. The state of the `forgotten` nodes is removed in the background.

        Raises the error of a constant expression that fails, because Spark evaluates it here.
        """
        with sql_errors():
            return self._build(graph, frozenset(forgotten), opened, running)

    def warm(self, circuit: Any, parallelism: int) -> None:
        """Compiles the expressions that the circuit that was warmed last does not have."""
        if circuit is self._warm:
            return
        circuit.warm(self._session._jsparkSession, parallelism, self._warm)
        self._warm = circuit

    def figures(self, path: str, durations: Sequence[float], parallelism: int) -> Statistics:
        """Returns the statistics of the operators whose state is at this path. `durations`: those of the newest ticks in milliseconds."""
        data = json.loads(self._jvm.tailgate.circuit.Statistics.recent(path))
        ticks, nodes = data["ticks"], {int(node): OperatorStatistics(*numbers) for node, numbers in data["nodes"].items()}
        return Statistics(ticks, parallelism * sum(durations[-ticks:]) if ticks else 0.0, nodes)

    def _build(self, graph: Graph, forgotten: frozenset[int], opened: Opened, running: Any) -> Any:
        parts = parts_of(graph)
        if self._last is None:
            circuit, new = self._circuit(), parts
        else:
            before, forgets, circuit = self._last
            removed, new = difference(before, parts)
            if circuit is running and parts == before and new == NOTHING and forgotten <= forgets:
                return circuit
            circuit = circuit.without(removed)
        for relation in new.relations.values():
            circuit.relation(relation.relation, self._struct(_named(relation.columns)), relation.errors)
            if relation.repeats:
                circuit.repeats(relation.relation)
        for node in new.nodes.values():
            if isinstance(node, SourceNode):
                decoder = self.decoder(node.decoder, opened)
                decoded = self._schema_ddl(decoder.schema())
                circuit.source(node.node, node.channel, decoder, self.shape(decoded, node.shape), node.on_error)
            else:
                circuit.operator(node.node, self._operator(node))
        for (origin, dead, to, port), shapes in new.links.items():
            for ddl, steps in shapes:
                shape = self.shape(ddl, steps)
                if dead:
                    circuit.deadLetters(origin, shape, to, port)
                elif port == RELATION:
                    circuit.output(origin, shape, to)
                else:
                    circuit.edge(origin, shape, to, port)
        for id in forgotten:
            circuit.forget(id)
        circuit.seal()
        self._last = parts, forgotten, circuit
        return circuit

    def shape(self, ddl: str, linear: Steps) -> Any:
        """Returns a cached DataFrame that applies these steps to rows of this type."""
        cached = self._shapes.get((ddl, linear))
        if cached is None:
            self._initialize_cases(linear)
            cached = _keep(self._shapes, (ddl, linear), _apply(self._empty(ddl), linear)._jdf)
        return cached

    def _initialize_cases(self, linear: Steps) -> None:
        """Initializes CASES for the first steps that use it. Otherwise their first tick would, for which all views wait."""
        if not self._has_cases and USES_CASES.search(repr(linear)):
            self._jvm.java.lang.Class.forName(CASES)
            self._has_cases = True

    def _empty(self, ddl: str) -> DataFrame:
        """Returns an empty DataFrame that Catalyst does not know to be empty.

        It is created in the JVM, which takes a fifth of the time of `createDataFrame` in Python.
        """
        rows: Any = self._session.sparkContext._jsc
        return DataFrame(self._session._jsparkSession.createDataFrame(rows.emptyRDD(), self._struct(ddl)), self._session)

    def _struct(self, ddl: str) -> Any:
        """Returns the cached StructType for this DDL."""
        cached = self._structs.get(ddl)
        if cached is None:
            cached = _keep(self._structs, ddl, self._struct_type.fromDDL(ddl) if ddl else self._struct_type())
        return cached

    def _schema_ddl(self, struct: Any) -> str:
        return str(struct.toDDL())

    def _ints(self, values: Iterable[int]) -> Any:
        return self._constant(self._int, tuple(values))

    def _booleans(self, values: Iterable[bool]) -> Any:
        return self._constant(self._boolean, tuple(values))

    def _constant(self, kind: Any, values: tuple[int | bool, ...]) -> Any:
        """Returns a cached Java array, which nothing changes: each element of a new one is a round trip."""
        key = (kind is self._int, *values)
        cached = self._arrays.get(key)
        return _keep(self._arrays, key, self._array(kind, list(values))) if cached is None else cached

    def _array(self, kind: Any, values: list[Any]) -> Any:
        """Returns a Java array with elements of this class."""
        gateway = self._session.sparkContext._gateway
        assert gateway is not None
        out = gateway.new_array(kind, len(values))
        for i, value in enumerate(values):
            out[i] = value
        return out

    def _format(self, spec: FormatSpec, opened: Opened) -> Any:
        """Returns the Java format for this specification."""
        formats = self._formats
        match spec.kind:
            case "none":
                return formats.none()
            case "bytes":
                return formats.bytes()
            case "text":
                return formats.text()
            case "json":
                return formats.json()
            case "json_columns":
                return formats.jsonColumns(self._struct(spec.columns))
            case "ksqldb":
                return formats.ksqldb(spec.schema, spec.registry, self.access(spec.access, opened))
            case "connect_json":
                return formats.connectJson(spec.schema)
            case "csv":
                of = json.loads(spec.schema)
                header = self._array(self._jvm.String, of["header"])
                return formats.csv(of["columns"], of["delimiter"], header, of["nulls"])
            case "regex":
                return formats.regex(spec.schema)
            case "protobuf":
                return formats.protobuf(spec.schema)
            case "avro" if not spec.registry:
                return formats.avroInline(spec.schema, spec.wire)
            case "avro":
                return formats.avro(spec.schema, spec.registry, self.access(spec.access, opened))
        raise ValueError(spec.kind)

    def access(self, access: str, opened: Opened) -> str:
        """Stores the access settings of a registry in the JVM. Returns their name there.

        Secrets that cannot be decrypted are reported when the registry is called.
        """
        if not access:
            return ""
        try:
            settings = opened(decode_settings(json.loads(access)))
            settings = settings if "key" not in settings else {**settings, "key": plain_key(settings)}
        except TailgateError as e:
            settings = {"error": e.message}
        return str(self._jvm.tailgate.security.Secrets.keep(json.dumps(settings)))

    def decoder(self, spec: DecoderSpec, opened: Opened = without_secrets) -> Any:
        """Returns the Java decoder for this specification."""
        decoder = self._decoders
        if isinstance(spec, ArrowDecoder):
            return decoder.arrow(self._struct(ddl_of(spec.columns)))
        formats = self._format(spec.key, opened), self._format(spec.value, opened)
        return decoder.kafka(*formats) if spec.max_bytes is None else decoder.kafka(*formats, spec.max_bytes)

    def _operator(self, node: operators.Operator) -> Any:
        """Returns the Java operator for this node."""
        make, ints, struct = self._operators, self._ints, self._struct
        match node:
            case operators.Upsert():
                return make.upsert(struct(ddl_of(node.columns)), ints(node.key), _first(node))
            case operators.CdcUpsert():
                return make.cdcUpsert(struct(ddl_of(node.columns)), ints(node.key), _first(node))
            case operators.CdcBag():
                return make.cdcBag(struct(ddl_of(node.columns)), _first(node))
            case operators.Join():
                left, right = struct(ddl_of(node.left)), struct(ddl_of(node.right))
                safe = self._booleans(node.null_safe)
                condition = None if node.condition is None else self.shape(ddl_of(node.left + node.right), Steps((node.condition,)))
                keys = left, ints(node.left_key), right, ints(node.right_key), safe
                append_only, unique = self._booleans(node.append_only), self._booleans(node.unique)
                return make.join(node.kind, *keys, append_only, unique, condition)
            case operators.ArrivalJoin():
                left, right = struct(ddl_of(node.left)), struct(ddl_of(node.right))
                return make.arrivalJoin(node.kind == "left", left, ints(node.left_key), right, ints(node.right_key), node.filling)
            case operators.WithinJoin():
                left, right = struct(ddl_of(node.left)), struct(ddl_of(node.right))
                sides = left, ints(node.left_key), node.left_time, right, ints(node.right_key), node.right_time
                return make.withinJoin(node.kind, *sides, node.before, node.after, node.grace, node.eager, node.filling)
            case operators.Closing():
                row = struct(ddl_of(node.input))
                if node.session is None:
                    return make.closing(row, node.width, node.time, node.end, node.grace, node.last, node.filling)
                start, key = node.session
                return make.sessions(row, node.width, ints(key), node.time, start, node.end, node.grace, node.last, node.filling)
            case operators.TemporalFilter():
                return make.temporalFilter(struct(ddl_of(node.columns)))
            case operators.SetOperation(kind=kind, all=all):
                return make.setOperation(struct(ddl_of(node.columns)), kind == "except", all)
            case operators.Fixpoint(columns=columns, all=all, limit=limit, name=name):
                row = struct(ddl_of(columns + node.sort_keys))
                return make.fixpoint(row, len(columns) - 1, ints(node.keys), all, limit, name)
            case operators.Window():
                functions = self._array(self._jvm.tailgate.operators.WindowCall, [self._window(f) for f in node.functions])
                rows, order = struct(ddl_of(node.input)), self._sorted_by(node.order)
                return make.window(rows, node.width, ints(node.partition), *order, functions)
            case operators.TopK():
                count = -1 if node.count is None else node.count
                rows, order = struct(ddl_of(node.input)), self._sorted_by(node.order)
                return make.topK(rows, node.width, ints(node.partition), *order, count, node.offset, node.ties, node.append_only)
            case operators.Reduce():
                calls = self._array(self._jvm.tailgate.aggregates.AggregateCall, [self._call(a) for a in node.aggregates])
                end, length = (-1, 0) if node.retention is None else node.retention
                return make.reduce(struct(ddl_of(node.input)), ints(node.key), calls, node.append_only, end, length)

    def _call(self, of: operators.AggregateCall) -> Any:
        """Returns the Java call for this aggregate."""
        columns, order = self._ints(of.columns), self._sorted_by(of.order)
        result = self._struct(f"r {of.type.spark}")
        return self._jvm.tailgate.aggregates.AggregateCall.of(
            of.function, columns, result, of.distinct, of.filter, *order, of.fraction, of.limit, of.unique
        )

    def _window(self, of: operators.WindowCall) -> Any:
        """Returns the Java call for this window function."""
        bounds = (x for b in (of.start, of.end) for x in (b.kind, b.offset, b.column))
        return self._jvm.tailgate.operators.WindowCall.of(self._call(of.function), of.mode, *bounds, of.exclude, of.key)

    def _sorted_by(self, keys: tuple[SortColumn, ...]) -> tuple[Any, Any, Any]:
        """Returns the sort order as three Java arrays: column, descending, NULLs first."""
        return self._ints(k.column for k in keys), self._booleans(k.descending for k in keys), self._booleans(k.nulls_first for k in keys)


@contextmanager
def sql_errors() -> Iterator[None]:
    """Raises an SqlError of Java as an error of Tailgate."""
    try:
        yield
    except Py4JJavaError as e:
        if e.java_exception.getClass().getName() != "tailgate.errors.SqlError":
            raise
        raise of(str(e.java_exception.sqlstate()), str(e.java_exception.getMessage())) from e


def _first(node: operators.Upsert | operators.CdcUpsert | operators.CdcBag) -> int:
    """Returns the original number of columns of an upsert's rows."""
    return len(node.columns) if node.first is None else node.first


def _named(columns: tuple[Field, ...]) -> str:
    """Returns Spark's DDL for these columns under their own names."""
    return ", ".join("`{}` {}".format(c.name.replace("`", "``"), c.type.spark) for c in columns)


def _apply(frame: DataFrame, linear: Steps) -> DataFrame:
    """Applies the steps of a linear chain to a DataFrame."""
    for step in linear.steps:
        match step:
            case Filter(expression):
                frame = frame.where(expression)
            case Project(expressions):
                frame = frame.selectExpr(*(f"{e} AS c{i}" for i, e in enumerate(expressions)))
            case Unnest(array, fields, outer):
                width = len(frame.columns)
                frame = frame.selectExpr("*", f"posexplode{'_outer' if outer else ''}({array}) AS (place, element)")
                names = cast(StructType, frame.schema["element"].dataType).names if fields else ()
                element_columns = [f"element.`{name}`" for name in names] or ["element"]
                numbered = [*element_columns, "CAST(place AS BIGINT) + 1"]
                frame = frame.selectExpr(*(f"c{i}" for i in range(width)), *(f"{e} AS c{width + i}" for i, e in enumerate(numbered)))
    return frame
