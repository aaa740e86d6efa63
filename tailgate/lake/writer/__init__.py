"""What only the engine runs: writing the log and the inbox, the rounds of the tables, their maintenance, and retention."""
