"""The options of commands for the limits of the engine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tailgate.operations.settings.quantities import MEMORY, TIME, Quantity

if TYPE_CHECKING:
    from tailgate.engine.runtime.spark.jvm import Limits

GB, TB, DAY = 1024, 1024**2, 86_400
OPTIONS = ("heap", "state-memory", "tick-rows", "held-log", "history")


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options."""
    heap, state, held = Quantity(512, TB, MEMORY), Quantity(32, TB, MEMORY), Quantity(GB, 1024 * TB, MEMORY)
    add = command.add_argument
    add("--heap", type=heap, default=2048, metavar="SIZE", help="the heap of the engine's JVM, 512MB or more (2GB)")
    add("--state-memory", type=state, default=256, metavar="SIZE", help="the memory of RocksDB, 32MB or more (256MB)")
    add("--tick-rows", type=Quantity(100, 10_000_000), default=50_000, metavar="N", help="records of a tick, by reader of Kafka (50000)")
    add("--held-log", type=held, default=20 * GB, metavar="SIZE", help="the log that a sink or subscription may hold, 1GB or more (20GB)")
    add("--history", type=Quantity(1, 30 * DAY, TIME), default=3600, metavar="TIME", help="how long past states are readable (1h)")


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns those options that are set, as arguments for a child engine."""
    values = {name: getattr(options, name.replace("-", "_")) for name in OPTIONS}
    return tuple(word for name, value in values.items() if value is not None for word in (f"--{name}", str(value)))


def limits(options: argparse.Namespace) -> Limits:
    """Returns the limits of the JVM."""
    from tailgate.engine.runtime.spark.jvm import Limits

    return Limits(options.heap, options.state_memory, options.tick_rows)
