"""Answers without running a query: cached results (`polls`) and look-ups by key in memory (`lookups`, `index`)."""
