"""Functions of numbers."""
