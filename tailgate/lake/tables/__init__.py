"""The Delta tables of stored relations, and the checkpoints that say which of their versions belong together."""
