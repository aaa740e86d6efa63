"""Measures the delay from a tick's commit until each follower of a view has its changes.

    python bench/follow.py [--followers 1000] [--changes 500] [--ticks 20] [--every 1.0]

Lake, writer and followers are in this process, the gateway in another one. Each follower is a plain
socket with `COPY (TAIL v WITH (SNAPSHOT = false)) TO STDOUT`. The delay counts from the moment when the
tick's entry is durable. The last line is JSON: ms over all followers and ticks, ms of the last follower
of each tick, and the gateway's CPU time per tick, which does not depend on the machine's load.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from _load import Client, quantiles, query  # a module of this folder
from _processes import cpu_s

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tailgate.engine.runtime.control.control import Answers, Control  # noqa: E402
from tailgate.lake.catalog import Change, Item, MaterializedView  # noqa: E402
from tailgate.lake.folder import Lake  # noqa: E402
from tailgate.lake.types import INT8, TEXT, Field, arrow_schema  # noqa: E402
from tailgate.lake.writer.engines import Announcement  # noqa: E402
from tailgate.lake.writer.log_writer import Writer, open_epoch  # noqa: E402

FORM = (Field("id", INT8, False), Field("segment", TEXT), Field("views", INT8), Field("last_page", TEXT))
MARK_MS = 250
PATIENCE_S = 30.0  # for one tick


def net(ids: range, version: int, weight: int) -> list[tuple[object, ...]]:
    return [(id, f"segment {id % 7}", id * 31 + version, f"/products/{id}/{version}", weight) for id in ids]


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    schema = arrow_schema(FORM, weight=True)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema)


def follower(dsn: str) -> socket.socket:
    connection = Client(dsn).socket
    connection.sendall(query("COPY (TAIL v WITH (SNAPSHOT = false)) TO STDOUT"))
    assert connection.recv(4096)[:1] == b"H"
    connection.setblocking(False)
    return connection


def tick(writer: Writer, item: Item, version: int, changes: int, followers: list[socket.socket]) -> list[float]:
    """Writes a tick. Returns the seconds from its commit until each follower had all changes."""
    half = range(changes // 2)
    rows = table(net(half, version - 1, -1) + net(half, version, 1))
    missing = dict.fromkeys(followers, changes)
    took: list[float] = []
    with selectors.DefaultSelector() as selector:
        for one in followers:
            selector.register(one, selectors.EVENT_READ)
        writer.append([(item.id, rows)])
        began = time.perf_counter()
        while missing:
            ready = selector.select(PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{len(missing)} followers are without their changes after {PATIENCE_S} s")
            for key, _ in ready:
                one = key.fileobj
                assert isinstance(one, socket.socket)
                data = one.recv(1 << 18)
                if not data:
                    raise ConnectionError("the gateway hung up")
                missing[one] -= data.count(b"\n")  # a newline byte cannot be part of a frame's length here
                if missing[one] <= 0:
                    took.append(time.perf_counter() - began)
                    selector.unregister(one)
                    del missing[one]
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--followers", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=500, help="of a tick: half of them go, half come")
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        writer = open_epoch(Lake.create(Path(folder) / "lake"))
        item = MaterializedView(16384, "v", FORM, (0,), stored=True, errors=16385)
        writer.append(kind="catalog", catalog=Change(put=(item,)))
        writer.append([(item.id, table(net(range(options.changes // 2), 0, 1)))])

        def newest(after: int, timeout: float) -> dict[str, int]:
            header = writer.lake.log.wait(after, timeout) or writer.newest
            return {"n": header.n, "time": header.time}

        control = Control(Answers(lambda *_: {}, newest, lambda lags: {}, lambda body: {}))
        control.start()
        Announcement.mine(writer.epoch, control.address, control.token, None).write(writer.lake)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = f"Path({str(writer.lake.path)!r}), port={port}"
        words = f"from tailgate.gateway.main import Options, run; from pathlib import Path; run(Options({settings}))"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as gateway:
            try:
                assert gateway.stdout is not None
                gateway.stdout.readline()
                followers = [follower(f"postgresql://bench@127.0.0.1:{port}/tailgate") for _ in range(options.followers)]
                tick(writer, item, 1, options.changes, followers)
                each = []
                before = cpu_s(gateway.pid)
                for version in range(2, options.ticks + 2):
                    time.sleep(options.every)
                    each.append(tick(writer, item, version, options.changes, followers))
                used = cpu_s(gateway.pid) - before
            finally:
                gateway.terminate()
        control.stop()
        writer.close()
    last = [max(one) for one in each]
    answer = {
        "followers": options.followers,
        "changes": options.changes,
        "ticks": len(each),
        "each_ms": quantiles([t for one in each for t in one]),
        "last_of_a_tick_ms": quantiles(last),
        "cpu_ms_a_tick": round(used / len(each) * 1000, 1),
        "within_the_mark": sum(t * 1000 <= MARK_MS for t in last),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
