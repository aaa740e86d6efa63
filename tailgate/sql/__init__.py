"""The SQL front end: parses and binds statements, and renders plans for Spark and DuckDB. No I/O, no Spark.

An example: `CREATE MATERIALIZED VIEW v AS SELECT date_trunc('hour', ts), count(*) FROM clicks GROUP BY 1`.

1. `statements.split` splits the text into statements, with the tokens of `tokens`, which follow
   PostgreSQL's lexical rules.
2. `statements.parse` chooses a parser by the first words. It returns a frozen value, here CreateView.
   Statements that only other systems support are rejected by name.
3. `grammar` parses the query, strictly, into sqlglot's tree. Each node has its position in the text.
4. `bind` turns the tree into a plan. `binding` resolves names, functions and implicit casts, and checks
   GROUP BY. Errors of steps 2 to 4 have PostgreSQL's messages and positions. `decorrelation` turns
   subqueries (`subqueries`) into joins.
5. `plan` is a small, closed algebra of frozen values. `properties` derives keys and other properties of
   a plan, `rewrite` and `relations` traverse it, `explain` prints it.
6. `functions` is the function catalogue, as data: signature, result type, and templates for Spark and
   DuckDB. `templates` fills the templates.
7. `scalars` renders a scalar for either engine (`spark`: for the circuit). `duckdb` renders a whole plan
   for an ad-hoc SELECT over tables r<id>. `duckdb_functions` installs what this SQL calls.

`compute` has functions that DuckDB lacks, each with an equivalent in the engine's Java library. `input`
parses values from text, for literals and casts, with the same results as the Java library.
"""
