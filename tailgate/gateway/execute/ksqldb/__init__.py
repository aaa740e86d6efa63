"""Push and pull queries of ksqlDB."""
