"""Functions of regular expressions, and the translation of their patterns."""
