"""Functions of text, bytea and text arrays."""
