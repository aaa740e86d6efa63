"""Statements that write tables. How an INSERT, UPDATE, DELETE or COPY runs:

1. `sql.binder.writes.writes` makes plans: the rows to insert or change, and existing rows with equal keys.
2. `evaluation` runs them on the mirrors and checks NOT NULL, CHECK and keys. The result is an
   `evaluation.Effect`: the net changes of tables, and the relations and keys that were read.
3. Outside a block, `execute.committing` sends the effect to the engine immediately, and evaluates again if
   anything it read has changed meanwhile. Inside a block, `mirrors.overlay` shows the effect to
   later statements of the block, and COMMIT sends all effects together. INSERTs of constants by many
   sessions share an evaluation and a request (`insert_groups`).
4. The engine replies when the write is durable (`control`). The client gets its reply when the
   mirrors of this gateway contain the write.
"""
