"""The gateway's process: `run` serves clients until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tailgate.gateway.http.server import HttpOptions, HttpServer
from tailgate.gateway.mirrors.sandbox import stand_in_for_pandas
from tailgate.gateway.resources import garbage
from tailgate.gateway.resources.memory import Memory, begin, default
from tailgate.gateway.resources.threads import BLOCKING, started
from tailgate.gateway.security.tls import Files, Tls
from tailgate.gateway.server import metrics
from tailgate.gateway.server.pressure import Pressure
from tailgate.gateway.server.server import Server
from tailgate.gateway.server.warm_up import warm
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.settings.settings import checked_defaults
from tailgate.gateway.workers import cpu_limit, pool
from tailgate.gateway.workers.searches import Searches
from tailgate.lake.folder import Lake
from tailgate.operations.definitions import GATEWAY
from tailgate.operations.endpoint import Address, opened
from tailgate.operations.otlp import active as otlp
from tailgate.operations.settings.process import ProcessSettings
from tailgate.sql.compute.regexp import search

if TYPE_CHECKING:
    from tailgate.gateway.console.server import ConsoleServer

# How long a background thread (mirrors, followers) may hold the interpreter's lock while a poll waits for it. Python's default of 5 ms
# is half of the promised latency of a poll.
SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a gateway.

    `data`: the location of the lake. `work_dir`: this machine's folder, if the lake is in a bucket.
    `insecure`: allows a `host` that other machines can reach, and trusts their clients.
    """

    data: Path | str
    work_dir: Path | None = None
    host: str = "127.0.0.1"
    port: int = 6875
    insecure: bool = False
    tls: Files | None = None
    http: HttpOptions | None = None
    memory: Memory | None = None  # the memory limit; None for `memory.default()`
    metrics: Address | None = None  # where metrics and health checks are served
    console: tuple[str, int] | None = None  # where the console is served
    control_listen: str | None = None  # where gateways on other machines reach this one
    defaults: tuple[str, ...] = ()  # NAME=VALUE: the values of settings with which sessions begin
    settings: ProcessSettings | None = None  # of this process, which SIGHUP reads again


def run(options: Options) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code."""
    sys.setswitchinterval(SWITCH_S)
    stand_in_for_pandas()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(options))
    else:
        uvloop.run(_serve(options))
    return 0


async def _serve(options: Options) -> None:
    defaults = checked_defaults(options.defaults)
    tls = Tls(options.tls) if options.tls is not None else None
    lake = Lake(options.data, options.work_dir)
    memory = options.memory or default()
    begin()
    endpoint = opened(options.metrics, GATEWAY)
    cpu_limit.enable()
    asyncio.get_running_loop().set_default_executor(started(BLOCKING, "tailgate-blocking"))
    serving = Serving(lake, memory)
    if (exporter := otlp.exporter()) is not None:
        from tailgate.operations.otlp.traces import TickTraces

        serving.mirrors.figures.trace = TickTraces(exporter, lake.id).mirror
    await serving.start()
    await asyncio.to_thread(pool.TEMPLATE.start)  # before the first long statement needs it
    await asyncio.to_thread(warm)
    search.external_search = Searches(memory.process)
    gateway = Gateway(
        lake, serving, tls, insecure=options.insecure, defaults=defaults, settings=options.settings, control_listen=options.control_listen
    )
    server = Server(gateway)
    web = _web_servers(options, gateway, server)
    pressure = asyncio.ensure_future(Pressure(serving).watch())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    try:
        web_addresses = [await each.listen() for each in web]
        addresses = await server.listen(options.host, options.port, [address for each in web_addresses for address in each])
        for each, its_addresses in zip(web, web_addresses, strict=True):
            await each.start()
            for host, port in its_addresses:
                print(f"{each.name} {'http' if tls is None else 'https'}://{host}:{port}/", flush=True)
        if endpoint is not None:
            metrics.connect(endpoint.metrics, gateway, server.connections)
            endpoint.health.started(partial(metrics.unready, gateway))
        for host, port in addresses:
            print(f"ready postgresql=postgresql://{host}:{port}/tailgate", flush=True)
        if options.settings is not None:
            options.settings.publish(lake.store)
        garbage.freeze_survivors()
        await stop.wait()
    finally:
        pressure.cancel()
        for each in web:
            await each.stop()
        await server.stop()
        await serving.stop()
        if options.settings is not None:
            options.settings.withdraw()


def _web_servers(options: Options, gateway: Gateway, server: Server) -> list[HttpServer | ConsoleServer]:
    web: list[HttpServer | ConsoleServer] = []
    if options.http is not None:
        web.append(HttpServer(gateway, options.http))
    if options.console is not None:
        from tailgate.gateway.console.server import ConsoleServer  # its servers and psycopg take 0.3 s to import

        web.append(ConsoleServer(gateway, server, *options.console))
    return web
