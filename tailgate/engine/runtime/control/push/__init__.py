"""Push queries of ksqlDB in the running engine."""
