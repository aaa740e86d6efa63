"""pg_catalog and information_schema as real relations, computed from the catalog, in their own DuckDB.

How a query of the system catalog runs:

1. `catalog_query` recognizes it: it names relations or functions of the system catalog and no relation of
   the user. `catalog_query` makes a `CatalogQuery`: `rewrite` converts the syntax tree to DuckDB's SQL,
   `tables` its FROM clause, and `typing` finds the PostgreSQL types of the columns.
2. `relations.database` holds PostgreSQL 15's fixed rows (`postgres15.zip`, `relations.json`) and the rows of
   Tailgate's items (`relations.rows`), updated to the current catalog. `views.sql` defines relations that are
   queries over others.
3. `functions` implements PostgreSQL's functions in Python; `duckdb_functions` lists those that DuckDB has.

PostgreSQL is the reference: tests/gateway/catalog compares the results for statements of real clients.
"""
