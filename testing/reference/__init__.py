"""An evaluation of queries that shares no code with the engine: the reference of the law and of other tests."""
