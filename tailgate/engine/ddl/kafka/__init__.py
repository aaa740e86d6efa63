"""CREATE SOURCE, CREATE SINK and CREATE CONNECTION: items that read or write Kafka, and schema registries."""
