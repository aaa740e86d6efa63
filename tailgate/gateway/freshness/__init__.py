"""The freshness lag of relations, and its history."""
