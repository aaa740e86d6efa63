"""SQL: text to bound, typed plans, and plans to the engines' spellings. No I/O, no Spark.

One statement, `CREATE MATERIALIZED VIEW v AS SELECT date_trunc('hour', ts), count(*) FROM clicks GROUP BY 1`:

1. `tokens` cuts the text by PostgreSQL's lexical rules; `statements.split` has cut it into statements.
2. `statements.parse` looks at the first words and reads a frozen value, CreateView; what only others know is refused by name.
3. `grammar` reads the query into sqlglot's tree, strictly, each node with its place in the text.
4. `bind` turns the tree into a plan against the catalog: `binding` finds what names mean, which function a call is and which casts
   happen by themselves, and what stands above GROUP BY. The errors of 2 to 4 are PostgreSQL's, at PostgreSQL's positions. What stands
   for a subquery there (`subqueries`) becomes joins (`decorrelation`) before anyone else sees the plan.
5. `plan` is what it has become: a small closed algebra of frozen values. `properties` says what follows from one (its key), `rewrite`
   walks scalars, `explain` prints a tree.
6. `functions` is data: each row a signature, its result type, and its spelling in Spark and in DuckDB. `templates` fills them.
7. `scalars` writes one scalar in either engine's spelling (`spark` for the circuit); `duckdb` writes a whole plan for an ad-hoc
   SELECT, over tables r<id>, with what `duckdb_functions` puts into the connection.

`compute` is what DuckDB has no spelling of, value by value, each with its twin in the engine's Java. `input` reads values from text, for
literals and for casts: one meaning with the engine's Java functions.
"""
