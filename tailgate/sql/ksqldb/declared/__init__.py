"""Declared streams and tables: properties and formats of topics, their defaults and refusals, sources, and the rows of INSERT."""
