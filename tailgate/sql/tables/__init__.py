"""Definitions of tables: their constraints, and what ALTER TABLE makes of them."""
