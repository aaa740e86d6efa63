"""Ticks: their loop in the driver, their inputs, and the log entries that they write."""
