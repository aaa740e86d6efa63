"""Constraints of the rows that a statement writes: NOT NULL, CHECK, keys and foreign keys."""
