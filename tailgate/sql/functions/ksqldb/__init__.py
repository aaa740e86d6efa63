"""The functions that only translations of ksqlDB's expressions call. Their names begin with `ksqldb_`."""
