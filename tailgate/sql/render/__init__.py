"""Renders plans as SQL of DuckDB, and scalars as SQL of DuckDB and Spark."""
