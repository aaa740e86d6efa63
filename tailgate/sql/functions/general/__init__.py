"""DuckDB's SQL for general numerics."""
