"""Schemas of the events that sinks write."""
