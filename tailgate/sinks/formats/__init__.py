"""Rows as Avro, JSON, text and Protobuf."""
