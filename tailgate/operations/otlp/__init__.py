"""Export of a process's metrics and of traces of ticks by OTLP over HTTP, with OpenTelemetry's SDK."""
