"""The exporter of this process, with the option --otlp. OpenTelemetry's SDK is imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailgate.operations.otlp.export import Exporter

_exporter: Exporter | None = None


def start(url: str, process: str) -> None:
    """Makes this process export to the collector at a URL. `process`: its command. Raises 22023."""
    global _exporter
    from tailgate.operations.otlp.export import Exporter

    _exporter = Exporter(url, process)


def exporter() -> Exporter | None:
    """Returns the exporter of this process, if it has one."""
    return _exporter
