"""The lake: the contract between the processes. The log is the database; the Delta tables follow it.

One tick, from the engine to its readers:

1. `writer`: an engine locks the lake (`engines`) and appends an entry with its new epoch, then one entry per tick
   (`log_writer`).
2. `log`: an entry is a header (`Header`: the state of the engine) and a section of net changes per changed relation
   (`entry`). The `store` creates it, complete and durable, only if its name is free. Readers poll for the next name, or
   are woken; `Log.after` returns the new entries. An entry that changes the `catalog` is followed by a copy of the whole
   catalog (`catalog_copies`).
3. `tables`: about once a second, a round (`writer.rounds`) brings the Delta table of each stored relation to the newest
   entry with the net changes (`weights`), in one commit per table (`merging`), and `checkpoints` lists the version of
   each.
4. `readers`: a relation at a time is its table at a checkpoint's version plus the log's later changes (`reading`).
5. `writer.retention`: older entries are rolled into segments (`log.segments`) and removed when tables, readers
   (`readers.holds`) and `since` have passed them. `writer.maintenance` maintains the tables' logs and files, between
   rounds.

`folder` has the class `Lake`: an open lake, with its log and its catalog. `store` is all that the other folders know of
files (ADR 0021). All packages share `errors` and `types`.
`host.crash` kills a process at a named point for tests.
"""
