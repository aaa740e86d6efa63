"""Alerts and objectives: their relations, the queries of alerts, and silences."""
