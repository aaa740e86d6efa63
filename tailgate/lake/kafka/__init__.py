"""Requests to Kafka that several processes make."""
