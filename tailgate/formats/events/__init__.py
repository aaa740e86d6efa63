"""Schemas of the events that sinks write. The engine shows them in EXPLAIN, and the sinks register them."""
