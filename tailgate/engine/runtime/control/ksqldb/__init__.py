"""Statements of ksqlDB in the running engine."""
