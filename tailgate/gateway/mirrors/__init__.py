"""The relations of the lake in memory: mirrors that follow the log, the entries of the log, and snapshots of one time."""
