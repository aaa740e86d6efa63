"""The gateway as a process: `run` until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.memory import Memory, begin, default
from gateway.pressure import Pressure
from gateway.server import Gateway
from gateway.tls import Files, Tls
from gateway.workers import pool, slices
from gateway.workers.searches import Searches
from gateway.workers.warm import warm
from sql.compute.regexp import search

# How long a thread of ours (mirrors, followers) may keep the interpreter while a poll waits for it; Python's own 5 ms would be half of
# what a poll is promised.
SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True)
class Options:
    """`data`: the lake's folder. `insecure`: `host` may be one that other machines reach, and they are trusted."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 6875
    insecure: bool = False
    tls: Files | None = None
    memory: Memory | None = None  # what it may take; `memory.default()` if left out


def run(options: Options) -> int:
    """Serves until it is told to stop; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    sys.setswitchinterval(SWITCH_S)
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(options))
    else:
        uvloop.run(_serve(options))
    return 0


async def _serve(options: Options) -> None:
    from gateway.serving import Serving
    from lake import Lake

    tls = Tls(options.tls) if options.tls is not None else None
    lake = Lake(options.data)
    memory = options.memory or default()
    begin()
    slices.enable()
    serving = Serving(lake, memory)
    await serving.start()
    await asyncio.to_thread(pool.TEMPLATE.start)  # it is ready before somebody needs it
    await asyncio.to_thread(warm)
    search.external_search = Searches(memory.process)
    gateway = Gateway(lake, serving, tls, insecure=options.insecure)
    pressure = asyncio.ensure_future(Pressure(serving).watch())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    try:
        for host, port in await gateway.listen(options.host, options.port):
            print(f"ready postgresql=postgresql://{host}:{port}/tailgate", flush=True)
        gc.collect()
        gc.freeze()  # what is there now stays: the collector need not look at it again between polls
        await stop.wait()
    finally:
        pressure.cancel()
        await gateway.stop()
        await serving.stop()
