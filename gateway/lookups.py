"""Look-ups by key from an index of rows, without DuckDB: `SELECT columns FROM relation WHERE key = value`.

    bound plan ──► Lookup (relation, key, columns), if it is one ──► Index.row(key) ──► DataRow
    text with literals ──► template + literals ──► the same, without parsing

A relation that is looked up often gets an index: its rows by key, filled and moved on by its changes like any follower's. A look-up is
answered from it only if it is as new as the mirrors, or nothing has changed since; otherwise DuckDB answers. Both give the
same bytes.

Measured: 15-25 µs from a prepared statement to bytes, where DuckDB takes 300-1,000 µs, on one busy core.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway.encode import binary, raw, text
from gateway.encode.raw import values as raw_values
from gateway.encode.rows import description
from gateway.encode.style import Style
from gateway.protocol import backend
from lake.errors import TailgateError
from lake.types import Field, Type
from sql import plan

if TYPE_CHECKING:
    import pyarrow as pa

    from gateway.access import Access
    from gateway.serving import Prepared, Serving

log = logging.getLogger("tailgate.gateway")

CATCH_UP_S = 0.05  # that a look-up waits for its index after a tick before it asks DuckDB: it takes about a millisecond
LOOKUPS_BEFORE = 20  # of one relation, before it is worth an index
INDEX_ROWS_MAX = 200_000  # rows of one index: some 300 bytes each
INDEXES_MAX = 16
IDLE_S = 60.0  # an index that nobody asked for so long goes
TEMPLATES_MAX = 500
# types whose equal values are the same raw value
KEY_TYPES = frozenset(("int2", "int4", "int8", "text", "varchar", "bool", "date", "timestamp", "timestamptz", "uuid"))


@dataclass(frozen=True, slots=True)
class Lookup:
    """`key`: per column of the relation's key, in its order, a literal or parameter. `columns`: what is projected, by position."""

    relation: int
    fields: tuple[Field, ...]
    key: tuple[plan.Literal | plan.Parameter, ...]
    types: tuple[Type, ...]
    columns: tuple[int, ...]


def lookup_of(prepared: Prepared) -> Lookup | None:
    """The look-up that a query is, if it is one."""
    match prepared.query.plan:
        case plan.Project(input=plan.Filter(input=plan.Scan() as scan, condition=condition), expressions=expressions):
            pass
        case _:
            return None
    if not scan.key or not all(isinstance(column, plan.Column) for column in expressions):
        return None
    found: dict[int, plan.Literal | plan.Parameter] = {}
    for part in condition.arguments if isinstance(condition, plan.And) else (condition,):
        if not (isinstance(part, plan.Call) and part.function.name == "=" and part.function.kind == "operator"):
            return None
        column, value = map(_same, part.arguments)
        if isinstance(value, plan.Column):
            column, value = value, column
        if not isinstance(column, plan.Column) or not isinstance(value, (plan.Literal, plan.Parameter)) or column.index in found:
            return None
        if column.type.is_array or column.type.name not in KEY_TYPES or _family(value.type) != _family(column.type):
            return None
        found[column.index] = value
    if set(found) != set(scan.key):
        return None
    types = tuple(scan.columns[i].type for i in scan.key)
    columns = tuple(c.index for c in expressions if isinstance(c, plan.Column))
    return Lookup(scan.relation, scan.columns, tuple(found[i] for i in scan.key), types, columns)


_FAMILIES = {"int2": "integer", "int4": "integer", "int8": "integer", "varchar": "text"}


def _family(type: Type) -> str:
    """Types whose equal values are the same raw value."""
    return _FAMILIES.get(type.name, type.name) + ("[]" if type.is_array else "")


def _same(scalar: plan.Scalar) -> plan.Scalar:
    """Without a cast that changes no value: to a wider integer, between texts."""
    match scalar:
        case plan.Call(function=function, arguments=(plan.Column() | plan.Literal() | plan.Parameter() as inner,), type=type):
            if (
                function.kind == "cast"
                and not type.modifiers
                and _family(inner.type) == _family(type)
                and _family(type) in ("integer", "text")
            ):
                return inner
    return scalar


def raw_key(value: object, type: Type) -> Any:
    """A value in stored form as `encode.raw` has it."""
    if type.name in ("int2", "int4", "int8", "bool"):
        return value
    if isinstance(value, str):
        return value.encode()
    import pyarrow as pa

    return raw_values(pa.array([value], type.arrow), type)[0]


class Index:
    """A relation's rows by key, as new as `time`."""

    def __init__(self, fields: Sequence[Field], key: Sequence[int]) -> None:
        self.rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.time = -1
        self.hits = 0
        self.moved = asyncio.Event()
        self._types = [f.type for f in fields]
        self._key = tuple(key)

    def apply(self, time: int, changes: pa.Table | None) -> None:
        """Net changes, with weights."""
        if changes is not None and changes.num_rows:
            columns = [raw.values(raw.stored(changes.column(i), t), t) for i, t in enumerate(self._types)]
            weights = changes.column(changes.num_columns - 1).to_pylist()
            rows = list(zip(*columns, strict=True))
            key = self._key
            for row, weight in zip(rows, weights, strict=True):
                if weight < 0:
                    self.rows.pop(tuple(row[i] for i in key), None)
            for row, weight in zip(rows, weights, strict=True):
                if weight > 0:
                    self.rows[tuple(row[i] for i in key)] = row
        self.time = time
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()


@dataclass(slots=True)
class Template:
    """A text whose literals are the key. `order`: of the key's columns, which literal; `encoders` by style."""

    lookup: Lookup
    prepared: Prepared
    order: tuple[int, ...]
    described: bytes
    encoders: dict[Style, list[Callable[[Any], bytes]]] = field(default_factory=dict)


_LITERALS = re.compile(rb"'(?:[^']|'')*'|\b\d{1,18}\b")
_NOT_PLAIN = re.compile(rb"[\"\\$]|--|/\*|\b[eEbBxXuUnN]&?'")


class Lookups:
    """`aside` runs what nobody waits for."""

    def __init__(self, serving: Serving, aside: Callable[[Any], None]) -> None:
        self._serving = serving
        self._aside = aside
        self._indexes: dict[int, Index | None] = {}  # None: too large, or failing
        self._asked: dict[int, int] = {}
        self._templates: OrderedDict[tuple[bytes, Hashable], Template] = OrderedDict()
        self._lookups: dict[int, tuple[Prepared, Lookup | None]] = {}

    def of(self, prepared: Prepared) -> Lookup | None:
        """`lookup_of`, remembered."""
        known = self._lookups.get(id(prepared))
        if known is None or known[0] is not prepared:
            if len(self._lookups) > 4 * TEMPLATES_MAX:
                self._lookups.clear()
            known = self._lookups[id(prepared)] = (prepared, lookup_of(prepared))
        return known[1]

    def rows(self, lookup: Lookup, prepared: Prepared, values: Sequence[object]) -> tuple[tuple[Any, ...], ...] | None:
        """The rows of a key, none or one; None if the index cannot tell."""
        index = self._index(lookup, prepared)
        if index is None:
            return None
        parts = [v.value if isinstance(v, plan.Literal) else values[v.number - 1] for v in lookup.key]
        if any(part is None for part in parts):
            return ()  # nothing equals NULL
        row = index.rows.get(tuple(raw_key(part, t) for part, t in zip(parts, lookup.types, strict=True)))
        return () if row is None else (row,)

    async def rows_soon(self, lookup: Lookup, prepared: Prepared, values: Sequence[object]) -> tuple[tuple[Any, ...], ...] | None:
        """The same, waiting a moment for an index that is a tick behind."""
        found = self.rows(lookup, prepared, values)
        index = self._indexes.get(lookup.relation)
        if found is None and index is not None and index.time >= 0:
            waiting = asyncio.ensure_future(index.moved.wait())
            try:
                await asyncio.wait((waiting,), timeout=CATCH_UP_S)
            finally:
                waiting.cancel()
            found = self.rows(lookup, prepared, values)
        return found

    def answer(self, sent: bytes, style: Style, scope: Hashable, access: Access) -> bytes | None:
        """Of a Query: all that is sent back, if its text is a look-up's and the index has the answer. `scope`: of `Seen`."""
        if not self._templates or len(sent) > 1000:
            return None
        template = self._templates.get((_LITERALS.sub(b"?", sent), scope))
        if template is None or not access.reads(template.prepared):
            return None
        lookup = template.lookup
        index = self._index(lookup, template.prepared)
        if index is None:
            return None
        literals = _LITERALS.findall(sent)
        key: list[Any] = []
        for place, type in zip(template.order, lookup.types, strict=True):
            literal = literals[place]
            quoted = literal[0] == 0x27
            if quoted != (type.name in ("text", "varchar")):
                return None
            key.append(literal[1:-1].replace(b"''", b"'") if quoted else int(literal))
        row = index.rows.get(tuple(key))
        if row is None:
            return template.described + _NONE_READY
        encoders = template.encoders.get(style)
        if encoders is None:
            encoders = template.encoders[style] = encoders_of(lookup, (0,) * len(lookup.columns), style)
        return template.described + encoded(row, lookup, encoders) + _ONE_READY

    def learn(self, sent: bytes, scope: Hashable, prepared: Prepared, lookup: Lookup) -> None:
        """Remembers the template of a text that was bound, if its literals are the key and nothing else."""
        if _NOT_PLAIN.search(sent) or not all(t.name in ("int2", "int4", "int8", "text", "varchar") for t in lookup.types):
            return
        places = {match.start(): number for number, match in enumerate(_LITERALS.finditer(sent))}
        if len(places) != len(lookup.key) or not sent.isascii():
            return
        order: list[int] = []
        for value in lookup.key:
            place = places.get(value.position) if isinstance(value, plan.Literal) and value.position is not None else None
            if place is None:
                return
            literal = _LITERALS.findall(sent)[place]
            meant = literal[1:-1].replace(b"''", b"'").decode() if literal[0] == 0x27 else int(literal)
            if not isinstance(value, plan.Literal) or meant != value.value:
                return
            order.append(place)
        described = backend.row_description(description(prepared.columns), (0,) * len(prepared.columns))
        self._templates[_LITERALS.sub(b"?", sent), scope] = Template(lookup, prepared, tuple(order), described)
        if len(self._templates) > TEMPLATES_MAX:
            self._templates.popitem(last=False)

    def _index(self, lookup: Lookup, prepared: Prepared) -> Index | None:
        """The index, if it is as new as the mirrors; asked for often enough, it is made."""
        relation = lookup.relation
        index = self._indexes.get(relation)
        if index is not None:
            index.hits += 1
            serving = self._serving
            current = index.time == serving.time or (index.time >= 0 and not serving.changed_since(prepared, index.time))
            return index if current and prepared.catalog_n == serving.catalog_n else None
        if relation not in self._indexes:
            asked = self._asked[relation] = self._asked.get(relation, 0) + 1
            if asked >= LOOKUPS_BEFORE and len(self._indexes) < INDEXES_MAX:
                item = self._serving.catalog.items.get(relation)
                if item is not None and item.key is not None:
                    self._indexes[relation] = index = Index(item.columns, item.key)
                    self._aside(self._follow(relation, index))
        return None

    async def _follow(self, relation: int, index: Index) -> None:
        changes = self._serving.changes(relation, after=self._serving.time, snapshot=True)
        kept: Index | None = None
        idle = asyncio.get_running_loop().time()
        try:
            async for batch in changes:
                if batch.table is not None and len(index.rows) + batch.table.num_rows > INDEX_ROWS_MAX + 20_000:
                    log.info("relation %d is too large for an index of its rows", relation)
                    return
                index.apply(batch.time, batch.table)
                now = asyncio.get_running_loop().time()
                if index.hits:
                    index.hits, idle = 0, now
                elif now - idle > IDLE_S:
                    self._asked.pop(relation, None)
                    self._indexes.pop(relation, None)
                    return
            kept = index
        except TailgateError:
            # a view's error, or a drop: whoever asks is told by the usual way
            self._asked.pop(relation, None)
            self._indexes.pop(relation, None)
        finally:
            if relation in self._indexes:
                self._indexes[relation] = kept
            with contextlib.suppress(Exception):
                await changes.aclose()  # type: ignore[attr-defined]


def encoders_of(lookup: Lookup, formats: Sequence[int], style: Style) -> list[Callable[[Any], bytes]]:
    types = [lookup.fields[i].type for i in lookup.columns]
    return [binary.encoder(t) if code else text.encoder(t, style) for t, code in zip(types, formats, strict=True)]


def encoded(row: tuple[Any, ...], lookup: Lookup, encoders: Sequence[Callable[[Any], bytes]]) -> bytes:
    """A DataRow."""
    values = [None if row[i] is None else encode(row[i]) for i, encode in zip(lookup.columns, encoders, strict=True)]
    return backend.data_row(values)


_ONE = backend.command_complete("SELECT 1")
_NONE = backend.command_complete("SELECT 0")
_ONE_READY = _ONE + backend.READY_FOR_QUERY["I"]
_NONE_READY = _NONE + backend.READY_FOR_QUERY["I"]


def answer_rows(rows: Sequence[tuple[Any, ...]], lookup: Lookup, formats: Sequence[int], style: Style) -> bytes:
    """DataRows and CommandComplete."""
    if not rows:
        return _NONE
    return encoded(rows[0], lookup, encoders_of(lookup, formats, style)) + _ONE
