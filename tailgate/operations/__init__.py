"""A process as operators see it: metrics and health checks over HTTP, and its log.

    definitions   the metrics that exist
    metrics       their values in one process
    endpoint      /metrics, /livez, /readyz and /startupz
    logs          the log as text or JSON

Engine, gateway and sinks fill in the values. This package knows none of them.
"""
