"""Parsers of the statements about items that `tailgate watch` evaluates."""
