"""The relations of the system catalog: PostgreSQL 15's fixed rows, the rows of Tailgate's items, and the DuckDB instance with them."""
