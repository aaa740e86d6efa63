"""The SQL front end: parses and binds statements, and renders plans for Spark and DuckDB. No I/O, no Spark.

An example: `CREATE MATERIALIZED VIEW v AS SELECT date_trunc('hour', ts), count(*) FROM clicks GROUP BY 1`.

1. `statements.split` splits the text into statements, with the tokens of `lexer`, which follow
   PostgreSQL's lexical rules.
2. `statements.parse` chooses a parser by the first words. It returns a frozen value, here CreateView.
   Statements that only other systems support are rejected by name.
3. `grammar` parses the query, strictly, into sqlglot's tree. Each node has its position in the text.
4. `bind` turns the tree into a plan. `binder` resolves names, functions and implicit casts, and checks
   GROUP BY. Errors of steps 2 to 4 have PostgreSQL's messages and positions. `decorrelate` turns
   subqueries (`plan.subqueries`) into joins.
5. `plan` is a small, closed algebra of frozen values. `plan.properties` derives keys and other
   properties of a plan, `plan.rewriting` and `plan.traversal` traverse it, `plan.explain` prints it.
6. `functions` is the function catalogue, as data: signature, result type, and templates for Spark and
   DuckDB.
7. `render` writes SQL: `render.scalars` a scalar for either engine (`render.spark`: for the circuit),
   `render.duckdb` a whole plan for an ad-hoc SELECT over tables r<id>. `render.templates` fills the
   templates, and `render.duckdb_functions` installs what this SQL calls.

`compute` has functions that DuckDB lacks, each with an equivalent in the engine's Java library. `input`
parses values from text, for literals and casts, with the same results as the Java library.
"""
