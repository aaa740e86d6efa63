"""Declared streams and tables: the properties and formats of their topics, their sources, and the rows of INSERT."""
