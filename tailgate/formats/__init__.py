"""Formats of Kafka's records that the engine, the sinks and the schema registry share."""
