"""Parsers of statements that define tables."""
