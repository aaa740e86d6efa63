"""PostgreSQL's grammar of queries: parses tokens into sqlglot's tree.

    tokens ──► queries (SELECT, FROM, joins) ──► expressions ──► types, names
                     └────────────► sqlglot.exp, each node with the position of its text

Only sqlglot's tree is used, not its parser. That parser accepts what PostgreSQL rejects (`TAIL v` is a
column with an alias, `SELECT a, FROM t` is valid), loses the positions of operators, and rewrites
functions by name before their types are known. The parsers here look one token ahead, so they report
a syntax error at the same token as PostgreSQL.

Source: PostgreSQL 15, src/backend/parser/gram.y.
"""
