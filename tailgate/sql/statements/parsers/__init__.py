"""Parses each kind of statement."""
