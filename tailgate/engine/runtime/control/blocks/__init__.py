"""Statements that change the catalog: planned alone, or together as a transaction block."""
