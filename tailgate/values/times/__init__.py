"""Dates, times and intervals."""
