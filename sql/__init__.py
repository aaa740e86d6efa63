"""SQL: text to bound, typed plans, and plans to the engines' spellings. No I/O, no Spark.

1. `tokens` cuts a text into tokens by PostgreSQL's rules, and into statements.
2. `statements` looks at the words first and makes a frozen value of every statement; queries go on to sqlglot through `dialect`.
3. `bind` gives names, types and functions a meaning against the catalog: `plan`, a closed algebra.
4. `functions` is data: for each signature its result type and its spelling in Spark and in DuckDB.
5. `spark` writes one scalar for Spark; `duckdb` writes a whole plan for DuckDB; `explain` prints a plan for people.
"""
