"""Parses statements about sources, sinks, secrets and connections."""
