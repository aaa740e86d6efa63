"""PostgreSQL's grammar of queries: tokens of ours to sqlglot's tree.

    tokens ──► queries (SELECT, FROM, joins) ──► expressions ──► types, names
                     └────────────► sqlglot.exp, each node with the position of its text

sqlglot gives the tree; its own parser is not asked, for it guesses where PostgreSQL refuses (`TAIL v` is a column with an alias, `SELECT
a, FROM t` is well), forgets where operators stand, and rewrites functions by name before their types are known. These functions
predict one token ahead, so that a syntax error is at the token where PostgreSQL's is.

Source: PostgreSQL 15, src/backend/parser/gram.y.
"""
