"""Parsers of statements about roles, their settings and privileges."""
