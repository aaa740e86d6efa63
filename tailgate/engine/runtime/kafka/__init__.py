"""Kafka as the driver asks it: metadata and old records, and which readers sources need."""
