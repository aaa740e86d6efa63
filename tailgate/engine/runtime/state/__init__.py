"""The operators' state of a lake in a bucket: its files in the log's entries and in the bucket, and its restoration (ADR 0025)."""
