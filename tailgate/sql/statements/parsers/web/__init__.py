"""Parsers of the statements of the HTTP service."""
