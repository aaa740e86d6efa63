"""Statements that write tables. What happens to one INSERT, UPDATE, DELETE or COPY:

1. `sql.binding.writes` gives it plans: the rows that come or are found, what they meet.
2. `evaluation` runs them on the mirrors, checks NOT NULL and keys, and makes an `evaluation.Effect`: net changes of tables, what was read.
3. Outside a block `committing` sends the effect to the engine at once, and evaluates again if something it read was written
   meanwhile; inside one, `serving.overlay` shows it to the block's later statements and COMMIT sends all together.
4. The engine answers when it is durable (`control`); the client when this gateway's mirrors have it.
"""
