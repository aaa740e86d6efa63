"""Statements that define temporary relations, which the session executes without the engine."""
