"""Clauses of recursive queries."""
