"""Sinks over relations of the schema `tailgate`, whose rows gateways compute (ADR 0030)."""
