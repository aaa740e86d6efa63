"""Recorded Debezium messages, a registry of their schemas, and a source that decodes them.

The source runs in the real circuit.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailgate.engine.ddl import Registry, create_source, create_view, refresh_schema
from tailgate.engine.plan.views import catalog_graph
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.host.server_thread import ServerThread
from tailgate.sql.statements import CreateSource, parse
from testing.records import frame_of

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "debezium"

Message = dict[str, Any]


def messages(folder: str, table: str) -> list[Message]:
    """Returns the recorded messages of a table."""
    return [json.loads(line) for line in (FIXTURES / folder / f"{folder}.{table}.jsonl").read_text().splitlines()]


def message(value: Any, key: Any = None, offset: int = 0, partition: int = 0) -> Message:
    """Returns a message with a JSON key and value; None is a null key or value."""
    key_b64, value_b64 = (None if v is None else base64.b64encode(json.dumps(v).encode()).decode() for v in (key, value))
    return {"partition": partition, "offset": offset, "timestamp": 0, "key_b64": key_b64, "value_b64": value_b64}


def value(of: Message) -> Any:
    """Returns a message's value, parsed as JSON."""
    return None if of["value_b64"] is None else json.loads(base64.b64decode(of["value_b64"]))


def with_value(of: Message, new: Any) -> Message:
    """Returns the message with another JSON value."""
    return {**of, "value_b64": base64.b64encode(json.dumps(new).encode()).decode()}


def schemas(folder: str) -> list[dict[str, Any]]:
    entries = json.loads((FIXTURES / folder / "schemas.json").read_text())
    return [{**s, "schema": s["schema"] if isinstance(s["schema"], str) else json.dumps(s["schema"])} for s in entries]


@contextmanager
def registry_of_fixtures() -> Iterator[str]:
    """Yields the URL of a schema registry with the recorded schemas.

    Schema ids are unique only within a folder, so each folder has its path.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, *path = self.path.strip("/").split("/")
            entries = schemas(folder)
            if path[:2] == ["schemas", "ids"]:
                matches = [s for s in entries if s["id"] == int(path[2].split("?")[0])]
            else:
                matches = [s for s in entries if s["subject"] == path[1]]
            data = json.dumps({"schema": matches[-1]["schema"]} if matches else {"error_code": 40401}).encode()
            self.send_response(200 if matches else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = ServerThread(server, "registry")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    thread.stop()


class Source:
    """A source in a running circuit, and the rows of its relations."""

    def __init__(self, session: Any, folder: Path, statement: str, partitions: int = 1) -> None:
        from tailgate.engine.runtime.spark.circuits import Circuits

        parsed = parse(statement)
        assert isinstance(parsed, CreateSource)
        self.items = create_source(parsed, statement, Catalog(), Registry())
        catalog = Catalog().apply(Change(put=self.items))
        if not self.items[0].stored:  # The source stores no rows, so a view over it does.
            view = f"CREATE MATERIALIZED VIEW all_of_it AS SELECT * FROM {self.items[0].name}"
            view_item = create_view(parse(view), view, catalog)  # type: ignore[arg-type]
            catalog = catalog.apply(Change(put=(view_item,)))
            self.items = (*self.items, view_item)
        self.session, self.state, self.ids, self.partitions = session, folder, "", partitions
        self.catalog = catalog
        self.circuit = Circuits(session).build(catalog_graph.compile_catalog(catalog, Streams(catalog)))
        self.rows: dict[int, Counter[tuple[Any, ...]]] = {i.id: Counter() for i in self.items}
        self.ticks = 0
        self.channel = ""  # overrides the source's channel if it is not empty

    @property
    def item(self) -> Item:
        return self.items[0]

    def send(self, batch: list[Message]) -> None:
        """Sends messages in one tick."""
        rows = []
        for m in batch:
            key, value = (None if m[f] is None else base64.b64decode(m[f]) for f in ("key_b64", "value_b64"))
            at = datetime.fromtimestamp(m["timestamp"] / 1000, timezone.utc)
            headers = [(k, None if v is None else base64.b64decode(v)) for k, v in m.get("headers") or ()]
            rows.append((key, value, self.channel or self.item.channel, m["partition"], m["offset"], at, 0, headers or None))
        frame = frame_of(self.session, rows).coalesce(1)
        result = self.circuit.tick(frame._jdf, str(self.state), self.ticks + 1, self.ids, self.partitions)
        self.ids = result.stateIds()
        self.ticks += 1
        for i, relation in enumerate(result.relations()):
            for row in pa.ipc.open_stream(bytes(result.changes(i))).read_all().to_pylist():
                *values, weight = (_hashable(v) for v in row.values())
                held = self.rows[relation]
                held[tuple(values)] += weight
                if not held[tuple(values)]:
                    del held[tuple(values)]

    def refresh(self) -> list[str]:
        """Runs ALTER SOURCE … REFRESH SCHEMA and returns its notices.

        Existing rows have NULL in the new columns.
        """
        from tailgate.engine.runtime.spark.circuits import Circuits

        statement = parse(f"ALTER SOURCE {self.item.name} REFRESH SCHEMA")
        change, notices = refresh_schema(statement, self.catalog, Registry())  # type: ignore[arg-type]
        self.catalog = self.catalog.apply(change)
        widths = {i.id: len(i.columns) for i in self.items}
        self.items = tuple(self.catalog[i.id] for i in self.items)
        for item in self.items:
            more = (None,) * (len(item.columns) - widths[item.id])
            self.rows[item.id] = Counter({(*row, *more): n for row, n in self.rows[item.id].items()})
        self.circuit = Circuits(self.session).build(catalog_graph.compile_catalog(self.catalog, Streams(self.catalog)))
        return [str(n["message"]) for n in notices]

    def lose_state(self) -> None:
        """Discards the state and rebuilds it from the rows of the relations."""
        from tailgate.engine.plan.views.recovery import recovery_graph
        from tailgate.engine.runtime.spark.circuits import Circuits
        from tailgate.lake.log.entry import stream
        from tailgate.lake.types import arrow_schema

        catalog = Catalog().apply(Change(put=self.items))
        part, channels = recovery_graph(catalog_graph.compile_catalog(catalog, Streams(catalog)), catalog)
        again = Circuits(self.session).build(part)
        self.state, self.ids = self.state / "again", ""
        for channel, relation in channels.items():
            columns = catalog[relation].columns
            names = [*(c.name for c in columns), "__weight"]
            rows = [dict(zip(names, (*r, n), strict=True)) for r, n in self.rows[relation].items()]
            data = stream(pa.Table.from_pylist(rows, arrow_schema(columns, weight=True)))
            record = (None, data, channel, 0, 0, datetime.now(timezone.utc), 0, None)
            frame = frame_of(self.session, [record]).coalesce(1)
            self.ids = again.tick(frame._jdf, str(self.state), self.ticks + 1, self.ids, self.partitions).stateIds()

    def rows_after(self, batch: list[Message]) -> list[tuple[Any, ...]]:
        """Sends messages to an append-only source and returns its rows in order.

        Returns the rows of all ticks, ordered by the first column.
        """
        self.send(batch)
        return sorted(self.rows[self.items[2].id].elements(), key=lambda row: [(v is None, str(v)) for v in row][:1])

    def counted(self, *columns: str) -> Counter[tuple[Any, ...]]:
        """Returns the number of copies of each row, or of its values in some columns."""
        names = [c.name for c in self.item.columns]
        out: Counter[tuple[Any, ...]] = Counter()
        for row, n in self.rows[self.item.id].items():
            out[tuple(row[names.index(c)] for c in columns or names)] += n
        return out

    def held(self, *columns: str) -> set[tuple[Any, ...]]:
        """Returns the rows, or some of their columns. Each row must be there once."""
        assert set(self.rows[self.item.id].values()) <= {1}
        return set(self.counted(*columns))

    def reasons(self) -> list[str]:
        """Returns the reasons of all dead letters, sorted."""
        return sorted(row[6] for row in self.rows[self.items[1].id])


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value
