"""Numeric types."""
