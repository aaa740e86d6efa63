"""The engine's side of the lake: writing the log and the inbox, the rounds of the tables, their maintenance, and retention."""
