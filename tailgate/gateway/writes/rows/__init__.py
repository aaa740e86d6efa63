"""The rows of a write: constants, queries, and the modifiers of columns."""
